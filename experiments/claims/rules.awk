# The claims of the sources, each with what is measured of it and the rule that turns the figures into a verdict. Goes behind claims.awk.
END {
  print "claim,experiment,measured,verdict"
  H = 3.136  # context-free entropy of the stories, nats: what Post-Norm stalls at

  a = verdicts("depth", "model.placement=post model.layers=~^(24|48)$", "stalled|diverged"); fails = all
  b = verdicts("depth", "model.placement=pre model.layers=~^(24|48)$", "^stable$"); smooth = all
  claim("Deep Post-Norm fails without warmup, Pre-Norm falls smoothly", "depth", \
        "24 and 48 layers: Post-Norm fails in " a " runs, Pre-Norm is stable in " b, pick(fails && smooth, "refuted"))

  claim("Norm position, not only presence, decides", "depth", \
        sprintf("the same norm, 24 layers: post %.3f, pre %.3f, sandwich %.3f, deepnorm %.3f nats", look("depth", "final_loss", "model.placement=post model.layers=24"), \
                look("depth", "final_loss", "model.placement=pre model.layers=24"), look("depth", "final_loss", "model.placement=sandwich model.layers=24"), \
                look("depth", "final_loss", "model.placement=deepnorm model.layers=24")), \
        pick(look("depth", "final_loss", "model.placement=post model.layers=24") > 0.98 * H && most("depth", "final_loss", "model.placement=~^(pre|sandwich|deepnorm)$ model.layers=24") < 0.9 * H, "refuted"))

  r6 = look("gradients", "grad_out", "placement=post layers=6 layer=5") / look("gradients", "grad_out", "placement=post layers=6 layer=0")
  r24 = look("gradients", "grad_out", "placement=post layers=24 layer=23") / look("gradients", "grad_out", "placement=post layers=24 layer=0")
  p24 = look("gradients", "grad_out", "placement=post layers=24 layer=23") / look("gradients", "grad_out", "placement=pre layers=24 layer=23")
  claim("Post-Norm's gradients near the output are abnormally large at initialisation", "gradients", \
        sprintf("last layer over first: %.1f with 6 layers, %.1f with 24; over Pre-Norm's last with 24: %.1f", r6, r24, p24), \
        r6 > 5 && r24 > 5 ? "confirmed" : p24 > 2 ? "depends: large beside Pre-Norm's, which fall with depth; no steep rise within Post-Norm" : "refuted")

  cold = verdicts("warmup", "model.layers=12 train.warmup=0", "^(stable|spiked)$"); dead = none
  warm = verdicts("warmup", "model.layers=12 train.warmup=~^(100|200|400)$", "^(stable|spiked)$"); rescued = !none
  deep = verdicts("warmup", "model.layers=18 train.warmup=~^(100|200|400)$", "^(stable|spiked)$"); deepfails = none
  claim("Warmup and norm are complementary: warmup rescues Post-Norm", "warmup", \
        "12 layers: " cold " runs train without warmup, " warm " with 100 to 400 steps of it; 18 layers: " deep, \
        dead && rescued ? (deepfails ? "depends: up to a depth" : "confirmed") : "refuted")

  w = look("claims", "final_loss", "run=~^pre-warmup-") - look("claims", "final_loss", "run=~^pre-[0-9]$")
  claim("Pre-Norm is insensitive to warmup", "claims", sprintf("24 layers, 50 steps of warmup in 150: %+.3f nats", w), w < -0.05 ? "refuted" : w < 0.05 ? "confirmed" : "depends: it needs none; steps spent at lower rates are lost")

  d = look("claims", "final_loss", "run=~^pre-no-final-[0-9]$") - look("claims", "final_loss", "run=~^pre-[0-9]$")
  dh = look("claims", "final_loss", "run=~^pre-no-final-hot-") - look("claims", "final_loss", "run=~^pre-hot-")
  claim("Pre-Norm needs a final norm", "claims", sprintf("24 layers without it: %+.3f nats at 1e-3, %+.3f at 3e-3", d, dh), \
        d > 0.05 && dh > 0.05 ? "confirmed" : d < 0.05 && dh < 0.05 ? "refuted" : "depends: on the learning rate")

  e6 = look("end", "validation_loss", "model.layers=6 model.placement=pre") - look("end", "validation_loss", "model.layers=6 model.placement=post")
  e12 = look("end", "validation_loss", "model.layers=12 model.placement=pre") - look("end", "validation_loss", "model.layers=12 model.placement=post")
  claim("Pre-Norm ends slightly worse than Post-Norm where both train", "end", sprintf("Pre-Norm's validation loss less Post-Norm's: %+.3f with 6 layers, %+.3f with 12", e6, e12), \
        e6 > 0.005 && e12 > 0.005 ? "confirmed" : e6 < 0.005 && e12 < 0.005 ? "refuted" : "depends: on the depth")

  first = look("dilution", "damage", "placement=pre layer=~^[0-3]$"); last = look("dilution", "damage", "placement=pre layer=~^([89]|1[01])$")
  claim("Deep Pre-Norm layers contribute little", "dilution", \
        sprintf("12 layers: removing one of the first four costs %.3f nats, one of the last four %.3f", first, last), pick(last < first / 3, "refuted"))

  i0 = look("stream", "exponent", "model=pre step=0"); i3 = look("stream", "exponent", "model=pre step=300"); g = look("stream", "exponent", "model=pre-gpt2 step=0")
  claim("The residual stream grows like the square root of the layers", "stream", \
        sprintf("exponent of Pre-Norm's rms by layer: %.2f at initialisation, %.2f after 300 steps, %.2f under GPT-2's init", i0, i3, g), \
        i0 > 0.4 && i0 < 0.65 ? (i3 > 0.4 && i3 < 0.65 ? "confirmed" : "depends: at initialisation with branches of equal variance; faster after training") : "refuted")

  v1 = verdicts("thousand", "model.placement=deepnorm model.layers=1000 train.lr=1e-3", "^(stable|spiked)$"); fast = all
  v2 = verdicts("thousand", "model.placement=deepnorm model.layers=1000 train.lr=3e-4", "^(stable|spiked)$"); slow = all
  v3 = verdicts("thousand", "model.placement=~^(pre|post)$ model.layers=1000", "^(stable|spiked)$"); others = !none
  claim("DeepNorm stacks to a thousand layers", "thousand", \
        sprintf("1000 layers: %.3f nats at 3e-4, %.3f at 1e-3; Pre-Norm and Post-Norm: %s train", look("thousand", "final_loss", "model.placement=deepnorm model.layers=1000 train.lr=3e-4"), \
                look("thousand", "final_loss", "model.placement=deepnorm model.layers=1000 train.lr=1e-3"), v3), \
        slow && fast ? "confirmed" : slow && !others ? "confirmed: at a lower rate than shallow models bear; the others do not train at all" : slow ? "depends: on the rate" : "refuted")

  s9 = look("claims", "final_loss", "run=~^scaled-0.9-"); s8 = look("claims", "final_loss", "run=~^scaled-0.8-")
  pre = look("claims", "final_loss", "run=~^pre-[0-9]$"); deepnorm = look("claims", "final_loss", "run=~^deepnorm-")
  claim("The \"DeepNorm\" of one source, x <- a x + F(N(x)) with a in 0.8 to 0.9, balances Post-Norm and Pre-Norm", "claims", \
        sprintf("24 layers: a = 0.9 %.3f, a = 0.8 %.3f; Pre-Norm %.3f, the paper's DeepNorm %.3f", s9, s8, pre, deepnorm), \
        s9 < pre - 0.02 && s8 < pre - 0.02 ? "confirmed" : s9 > 0.95 * H && s8 > 0.95 * H ? "refuted: it stalls where both Pre-Norm and the paper's DeepNorm train" : "depends: it trains, no better than Pre-Norm")

  sr = look("stream", "rms_last", "model=sandwich step=300"); pr = look("stream", "rms_last", "model=pre step=300")
  claim("Sandwich bounds both sides of the branch", "stream", sprintf("rms of the last stream after 300 steps: sandwich %.1f, pre %.1f", sr, pr), \
        sr < pr / 2 ? "confirmed" : "depends: it bounds what a branch writes at initialisation; trained gains let the stream grow as much as Pre-Norm's")

  claim("LayerNorm is invariant to shift and positive scale, RMSNorm to scale only", "invariance", \
        sprintf("largest change over rms: LayerNorm %.1e and %.1e, RMSNorm %.2f and %.1e", look("invariance", "shift", "norm=layernorm"), look("invariance", "scale", "norm=layernorm"), \
                look("invariance", "shift", "norm=rmsnorm"), look("invariance", "scale", "norm=rmsnorm")), \
        pick(look("invariance", "shift", "norm=layernorm") < 1e-3 && look("invariance", "scale", "norm=layernorm") < 1e-3 && look("invariance", "shift", "norm=rmsnorm") > 0.1 && look("invariance", "scale", "norm=rmsnorm") < 1e-3, "refuted"))

  bn = look("invariance", "unrestored", "norm=batchnorm"); ln = look("invariance", "unrestored", "norm=layernorm")
  claim("A learned gain = sigma and bias = mu gives back the identity", "invariance", \
        sprintf("share of x that the best gain and bias per channel leave out: BatchNorm %.1e, LayerNorm %.2f", bn, ln), \
        bn < 1e-3 && ln < 1e-3 ? "confirmed" : bn < 1e-3 ? "depends: true of BatchNorm; LayerNorm's sigma and mu differ by token, its gain and bias do not" : "refuted")

  b = verdicts("invariance", "norm=layernorm batch=no future=no", "x"); b1 = verdicts("invariance", "norm=batchnorm batch=yes future=yes", "x")
  claim("A token's statistics do not depend on batch, length or mode under LayerNorm, and do under BatchNorm", "invariance", \
        sprintf("change of evaluation against training: LayerNorm %.1f, BatchNorm %.1f rms; other sequences and the future heard by BatchNorm only", look("invariance", "evaluation", "norm=layernorm"), look("invariance", "evaluation", "norm=batchnorm")), \
        pick(b ~ /of 1$/ && b1 ~ /of 1$/ && look("invariance", "evaluation", "norm=layernorm") == 0 && look("invariance", "evaluation", "norm=batchnorm") > 0.1, "refuted"))

  share = look("batchnorm/statistics", "padded", "seed=2") / look("batchnorm/statistics", "positions", "seed=2")
  m = look("batchnorm/statistics", "mean_kept_zeros", "seed=2"); s2 = look("batchnorm/statistics", "variance_ratio_zeros", "seed=2")
  claim("Padding with zeros as long again halves BatchNorm's variance and pulls the mean to zero", "batchnorm", \
        sprintf("%.0f %% padding: %.2f of the mean and %.2f of the variance are left", 100 * share, m, s2), \
        pick(m < 1 - share + 0.02 && m > 1 - share - 0.02 && s2 < 1 - share + 0.05 && s2 > 1 - share - 0.05, "refuted"))

  text = "RMSNorm saves a few to some ten per cent of norm time (one source: 25 % of compute, 18 % of training time, 12 % of memory)"
  rf = look("rmsnorm/speed", "value", "group=norms name=~^RMSNorm.forward threads=1") / look("rmsnorm/speed", "value", "group=norms name=~^LayerNorm.forward threads=1")
  rb = look("rmsnorm/speed", "value", "group=norms name=~^RMSNorm.backward threads=1") / look("rmsnorm/speed", "value", "group=norms name=~^LayerNorm.backward threads=1")
  step = 100 * (1 - 1 / look("rmsnorm/speed", "ratio", "group=zoo name=~^norm.layernorm$"))
  claim(text, "rmsnorm", sprintf("bytes per second, RMSNorm over LayerNorm: %.2f forward, %.2f backward; a training step is %.1f %% shorter", rf, rb, step), \
        step > 10 ? "confirmed" : rf > 1.02 && rb > 1.02 ? "depends: of the norm's own time, yes; of a training step a few per cent, as norms are a small part of it" : "refuted")

  q = look("rmsnorm", "final_loss", "model.layers=6 model.placement=pre model.norm=rmsnorm") - look("rmsnorm", "final_loss", "model.layers=6 model.placement=pre model.norm=layernorm")
  claim("Removing the mean costs nothing in quality", "rmsnorm", sprintf("RMSNorm less LayerNorm, Pre-Norm, 6 layers, three seeds: %+.4f nats", q), pick(q < 0.01, "refuted"))

  al = look("affine", "final_loss", "model.layers=6 model.placement=pre model.norm=layernorm norm.affine=false train.warmup=0") - look("affine", "final_loss", "model.layers=6 model.placement=pre model.norm=layernorm norm.affine=true train.warmup=0")
  ar = look("affine", "final_loss", "model.layers=6 model.placement=pre model.norm=rmsnorm norm.affine=false train.warmup=0") - look("affine", "final_loss", "model.layers=6 model.placement=pre model.norm=rmsnorm norm.affine=true train.warmup=0")
  claim("Fixing gain and bias hurts", "affine", sprintf("cost at 6 layers: LayerNorm %+.4f, RMSNorm %+.4f nats", al, ar), \
        al > 0.02 && ar > 0.02 ? "confirmed" : al > 0 && ar > 0 ? "depends: measurable, and small at this size" : "refuted")

  e0 = look("precision", "final_loss", "model.norm=layernorm norm.eps=0.0 run.precision=fp32 model.layers=4 train.lr=0.001 train.steps=200") - look("precision", "final_loss", "model.norm=layernorm norm.eps=1e-05 run.precision=fp32 model.layers=4 train.lr=0.001 train.steps=200")
  z = verdicts("precision", "model.norm=instancenorm norm.eps=1e-30", "diverged"); breaks = all
  claim("Forgetting eps breaks", "precision", sprintf("eps 0 against 1e-5: %+.4f nats; eps = 1e-30 where a variance is zero: %s diverge", e0, z), \
        e0 < 0.01 && breaks ? "depends: only where a variance is zero, and a 0 / 0 defined as 0 survives even that" : pick(e0 > 0.01, "refuted"))

  st = look("precision", "final_loss", "model.layers=24 norm.statistics=bf16") - look("precision", "final_loss", "model.layers=24 norm.statistics=fp32 run.precision=bf16")
  claim("Statistics must be fp32 in low precision", "precision", sprintf("24 layers in bf16, statistics rounded too: %+.4f nats", st), \
        st > 0.01 ? "confirmed" : "refuted: at this size and without outliers nothing shows")

  nl = most("nonorm/layers", "logit_max", "run=~^xavier.placement=none step=150"); pl = most("nonorm/layers", "logit_max", "run=~^xavier.placement=pre step=150")
  nf = most("nonorm/layers", "ffn_rms", "run=~^xavier.placement=none step=150"); pf = most("nonorm/layers", "ffn_rms", "run=~^xavier.placement=pre step=150")
  nb = verdicts("nonorm", "model.placement=none", "^(stable|spiked)$")
  claim("Without a norm attention sharpens and FFN activations grow", "nonorm", \
        sprintf("12 layers, Xavier, after 150 steps, the largest of all rates and seeds: score %.0e against %.0e, FFN rms %.0e against %.0e under Pre-Norm; of all settings %s runs without a norm train", nl, pl, nf, pf, nb), \
        nl > 10 * pl && nf > 10 * pf ? "confirmed" : "depends: on init and rate")

  qn = most("qknorm/attention", "logit_max", "run=~qk_norm=none.attention_cap=0"); qr = most("qknorm/attention", "logit_max", "run=~qk_norm=rmsnorm.attention_cap=0")
  claim("QK-norm bounds attention logits", "qknorm", sprintf("largest score over all rates: %.0f without, %.0f with RMS QK-norm", qn, qr), pick(qr < qn / 3, "refuted"))

  more = look("claims", "final_loss", "run=~^more-") - look("claims", "final_loss", "run=~^pre-[0-9]$"); manifold = look("claims", "final_loss", "run=~^most-") - look("claims", "final_loss", "run=~^pre-[0-9]$")
  claim("Adding norms at will hurts", "claims", \
        sprintf("24 layers against Pre-Norm alone: Sandwich with norms on embedding, q, k, v %+.3f nats, NormFormer with norms on q, k, v %+.3f", more, manifold), \
        more > 0.02 && manifold > 0.02 ? "confirmed" : more < 0.02 && manifold < 0.02 ? "refuted: not in these runs" : "depends: on which")
}
