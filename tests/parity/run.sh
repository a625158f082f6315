#!/bin/sh
# Replays varied small runs in PyTorch: run.sh NORMLAB_PROGRAM. Exit code 77 where no Python 3.11 with PyTorch is found (PYTHON names one).
here=$(dirname "$0")
export NORMLAB="${1:?usage: run.sh NORMLAB_PROGRAM}"
for python in ${PYTHON:-python3 /usr/bin/python3}; do
  "$python" -c 'import torch, tomllib' 2>/dev/null && break
  python=
done
if [ -z "$python" ]; then
  echo "SKIPPED, not a pass: no Python 3.11 with PyTorch found (Debian, Ubuntu: apt-get install python3-torch; or PYTHON=/path/to/python3)"
  exit 77
fi

failed=0
replay() {
  settings=
  for setting in "$@"; do settings="$settings --set $setting"; done
  echo "replay $*"
  # shellcheck disable=SC2086  # settings hold no blanks
  "$python" "$here/replay.py" "$here/small.toml" $settings --tolerance 1e-5 || failed=1
}

replay model.placement=post model.norm=layernorm
replay model.placement=post model.norm=batchnorm data.padding=0.3
replay model.placement=pre model.norm=rmsnorm model.position=rope model.kv_heads=1 model.activation=swiglu model.bias=false
replay model.placement=pre model.norm=instancenorm data.padding=0.3 norm.masked=false model.position=none
replay model.placement=deepnorm model.norm=layernorm norm.affine=false model.activation=relu train.schedule=cosine train.warmup=3
replay model.placement=deepnorm model.norm=rmsnorm placement.alpha=1.5 model.final_norm=on model.activation=geglu
replay model.placement=sandwich model.norm=rmsnorm model.qk_norm=layernorm model.activation=silu train.accumulate=2 data.padding=0.2
replay model.placement=sandwich model.norm=batchnorm train.accumulate=2 model.tie_embeddings=true
replay model.placement=pre model.norm=groupnorm norm.groups=2 model.qk_norm=groupnorm model.position=sinusoidal
replay model.placement=post model.norm=layernorm norm.bias=false norm.unit_offset=true train.optimizer=adamw train.weight_decay=0.1
replay model.norm=layernorm norm.fused=false norm.unit_offset=true model.qk_norm=rmsnorm
replay model.norm=rmsnorm norm.eps_position=outside norm.eps=0.1 norm.unit_offset=true model.placement=pre
replay model.norm=rmsnorm norm.eps_position=clamped norm.eps=0.5 model.placement=sandwich model.qk_norm=rmsnorm
replay model.norm=prmsnorm norm.share=0.3 model.placement=pre
replay model.norm=crmsnorm norm.eps=0.1 model.placement=sandwich model.qk_norm=crmsnorm
replay model.norm=scalenorm model.placement=pre model.qk_norm=l2norm
replay model.norm=scalenorm norm.affine=false model.placement=post
replay model.norm=l2norm model.placement=pre
replay model.norm=l2norm norm.affine=false model.placement=sandwich model.qk_norm=scalenorm
replay model.norm=groupnorm_time norm.groups=2 model.placement=pre data.padding=0.3
replay model.norm=adanorm norm.scale=1.5 norm.slope=0.2 model.placement=post model.qk_norm=adanorm
replay model.norm=adanorm norm.detach=false model.placement=pre
replay model.norm=dyt model.placement=pre model.qk_norm=derf norm.alpha=0.8
replay model.norm=dyt norm.affine=false model.placement=sandwich
replay model.norm=derf model.placement=pre model.tie_embeddings=true
replay model.norm=powernorm model.placement=pre norm.groups=2 data.padding=0.3
replay model.norm=powernorm model.placement=pre norm.warmup=3 norm.decay=0.7
replay model.norm=powernorm model.placement=sandwich norm.running=false data.padding=0.3 train.recompute=true
replay model.norm=powernorm model.placement=pre norm.warmup=2 train.accumulate=2 train.recompute=true
replay model.placement=none model.activation=gelu_tanh train.optimizer=sgd train.lr=0.1 train.momentum=0.9 train.weight_decay=0.01 train.clip=0.5
replay model.norm=none train.optimizer=adamw train.weight_decay=0.2 train.betas=[0.8,0.95] train.eps=1e-6 train.schedule=wsd
replay data.source=markov train.schedule=inverse_sqrt train.warmup=2 train.slots=2 norm.fused=false norm.eps=0.01
replay train.schedule=linear train.min_lr=1e-4 train.clip=1 model.placement=pre model.final_norm=off
replay model.placement=residual model.norm=layernorm placement.scale=0.5
replay model.placement=subln model.norm=layernorm model.activation=swiglu
replay model.placement=reordered model.norm=rmsnorm placement.gain=0
replay model.placement=lns model.norm=rmsnorm model.layers=4 model.init=normal
replay model.placement=scaled_pre placement.alpha=0.8
replay model.placement=layerscale model.norm=layernorm
replay model.placement=rezero train.optimizer=adamw train.weight_decay=0.2 train.lr=1e-2
replay model.placement=skipinit placement.alpha=0.3
replay model.placement=normformer model.norm=layernorm placement.scale_skip=true train.optimizer=adamw train.weight_decay=0.2
replay model.placement=normformer model.activation=geglu model.kv_heads=1
replay model.placement=keel model.norm=rmsnorm model.layers=3
replay model.placement=b2t model.norm=layernorm model.layers=3
replay model.placement=mixln model.norm=rmsnorm model.layers=4
replay model.placement=hybridnorm model.norm=rmsnorm model.kv_heads=1 model.position=rope
replay model.placement=hybridnorm model.norm=layernorm placement.first_pre=true model.qk_norm=rmsnorm
replay model.placement=hybridnorm model.norm=batchnorm model.kv_heads=1
replay model.placement=pre model.qk_norm=rmsnorm model.qk_norm_over=width model.kv_heads=1 model.position=rope
replay model.placement=post model.qk_norm=layernorm model.qk_norm_at=after_rope model.position=rope model.v_norm=rmsnorm model.kv_heads=1
replay model.placement=pre model.qk_norm=l2norm model.attention_scale=10 model.attention_scale_learned=true train.weight_decay=0.2 train.optimizer=adamw
replay model.placement=pre model.attention_scale=4 model.attention_cap=2 model.logit_cap=0.7
replay model.placement=sandwich model.attention_cap=0.5 model.attention_scale_learned=true train.z_loss=0.1 data.padding=0.3 train.accumulate=2
replay model.placement=hybridnorm model.norm=rmsnorm model.qk_norm=l2norm model.qk_norm_at=after_rope model.v_norm=layernorm model.position=rope
replay model.norm=none model.v_norm=l2norm model.qk_norm=layernorm model.qk_norm_over=width train.z_loss=1e-2 model.logit_cap=30
replay model.placement=sandwich placement.embedding_norm=true
replay model.placement=tfixup model.position=sinusoidal
replay model.placement=parallel model.layers=3
replay model.placement=parallel placement.norms=1 model.norm=layernorm model.kv_heads=1
replay model.placement=admin model.norm=layernorm train.optimizer=adamw train.weight_decay=0.2
replay model.placement=admin placement.profile=true model.norm=layernorm model.layers=4 model.position=sinusoidal data.padding=0.2
replay model.placement=admin placement.profile=true model.norm=batchnorm train.accumulate=2 model.init=torch
replay model.placement=subln model.init=mitchell model.layers=3
replay model.init=ds_init model.norm=layernorm model.tie_embeddings=true
replay model.layers=4 'model.layer_placement=["post:0","sandwich:1-2","residual:3"]' placement.embedding_norm=true
replay model.layers=4 'model.layer_placement=["residual:0-1","deepnorm:2","hybridnorm:3"]' 'model.layer_norm=["layernorm:0-1","rmsnorm:2-3"]' placement.alpha=1.5
replay train.lr=1e30 # diverges: the losses must stop being numbers at the same step
exit $failed
