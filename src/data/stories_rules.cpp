// The grammar of the stories. In a rule, [one|two] is either, evenly drawn; {key} is a fact of the story (a name, a
// pronoun, a thing; stories.cpp sets them) or else another rule; {Key} the same with a capital; {a text} puts "a" or
// "an" before the text.
#include "data/sources.h"

namespace normlab {

const std::map<std::string_view, std::string_view>& story_rules() {
  static const std::map<std::string_view, std::string_view> all = {
      // Words.
      {"girl",
       "[Anna|Bella|Clara|Daisy|Ella|Fiona|Greta|Hannah|Iris|Julia|Kira|Lily|Mia|Nora|Olga|Polly|Rosa|Sara|Tina|Vera|"
       "Wanda|Yara]"},
      {"boy",
       "[Adam|Ben|Carl|David|Emil|Felix|Gus|Henry|Ivan|Jack|Kurt|Leo|Max|Noah|Oscar|Paul|Rob|Sam|Tom|Victor|Will|"
       "Yuri]"},
      {"animal",
       "[fox|bear|cat|dog|owl|frog|rabbit|horse|goat|hen|duck|pig|cow|crow|hedgehog|squirrel|badger|otter|donkey|snail|"
       "turtle|lizard|wolf|zebra|elephant|parrot|swan|beaver|hamster|mole|toad|lamb|spider|whale|monkey|lion]"},
      {"object",
       "[kite|cup|hat|ball|book|brush|coat|comb|crown|feather|glove|jar|ring|scarf|shell|stick|sword|coin|mask|basket|"
       "button|nut|pebble|plate|ribbon|pencil|pillow|box|wheel|arrow|egg|bone|clock|doll|fork|cork|sock|pot|pipe|"
       "stamp]"},
      {"tool",
       "[key|rope|lamp|bell|spoon|shovel|net|whistle|map|blanket|broom|bucket|hammer|needle|candle|mirror|drum|flute|"
       "umbrella|axe|ladder|horn]"},
      {"look",
       "[red|blue|green|yellow|white|black|golden|silver|purple|pink|brown|grey|orange|small|big|old|new|tiny|huge|"
       "round|shiny|heavy|light|lovely|strange|wooden|dusty|dirty|clean|striped|pretty|ugly|square|bent|short|smooth|"
       "thin|thick]"},
      {"trait",
       "[brave|shy|clever|kind|funny|quiet|lazy|hungry|cheerful|careful|curious|friendly|gentle|tidy|jolly|lonely|"
       "merry|noisy|patient|polite|proud|sleepy|stubborn|tall|wild|wise|young]"},
      {"many",
       "[apples|pears|stones|nuts|shells|birds|ducks|frogs|stars|flowers|leaves|candles|buttons|coins|eggs|plums|"
       "carrots|snails|boats|clouds|cherries|mushrooms|feathers|bees|ants|cakes|fish|lemons|beans|crabs]"},
      {"place",
       "[forest|garden|meadow|village|castle|river|lake|mill|market|bridge|hill|cave|beach|farm|barn|school|tower|"
       "valley|harbour|island|pond|field|bakery|library|orchard|swamp|desert|church|palace|station]"},
      {"spot",
       "[under|behind|beside|near] the "
       "[gate|bench|hedge|stairs|fence|oven|table|haystack|cupboard|sofa|bed|stove|{look} "
       "[stone|tree|wall|bush|cart|door|rock]]"},
      {"part", "[tail|nose|ears|feet|eyes|teeth|belly|legs|hair|voice]"},
      {"clothes", "[boots|coat|cap|shoes|scarf|jacket|gloves|raincoat|mittens|hood]"},
      {"bag", "[bag|pocket|basket|sack|backpack|cart|trunk]"},
      {"elder", "[mother|grandmother|aunt|teacher|father|grandfather|uncle|cousin|neighbour]"},
      {"how",
       "[slowly|quickly|quietly|happily|sadly|carefully|softly|loudly|gladly|proudly|gently|bravely|politely|calmly|at "
       "once]"},
      {"went", "[went|walked|ran|hurried|jumped|wandered|danced|hopped|marched|strolled|raced|crept]"},
      {"said", "[said|cried|whispered|shouted|called|answered]"},
      {"day", "[Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday]"},
      {"time", "[morning|evening|afternoon|night]"},
      {"syllable", "[ba|do|fi|gu|ka|lo|mi|nu|pa|ro|si|tu|va|wo|xi|za|jo|he|ley|quo]"},
      {"then", "[Then|After that|Soon|A little later|In the {time}|The next {time}|At last|Before long|Meanwhile]"},
      {"praise", "[What|Oh, what] {a [nice|fine|splendid|wonderful|beautiful|useful|funny|strange]}"},
      {"wow", "[Oh|Look|Hello|Hurry|Listen|Well|Hooray|Ah]"},
      // What each tool is good for.
      {"use key", "opened the [rusty|heavy|secret|old] [gate|door|chest]"},
      {"use rope", "pulled {friend} out of the [mud|hole|well]"},
      {"use lamp", "lit the way through the [dark|long] [tunnel|cave|cellar]"},
      {"use bell", "rang until [all the people|the whole village] came to help"},
      {"use spoon", "fed the [hungry|tiny] [bird|kitten|lamb]"},
      {"use shovel", "dug a deep [hole|ditch|path]"},
      {"use net", "caught [the fish|the runaway hat|seven butterflies]"},
      {"use whistle", "blew so hard that the [thief|wolf] ran away"},
      {"use map", "found the [short|safe|right] way home"},
      {"use blanket", "kept {friend} warm [all night|in the snow]"},
      {"use broom", "swept away the [spider webs|dust|leaves]"},
      {"use bucket", "put out the fire"},
      {"use hammer", "mended the [roof|fence|bridge]"},
      {"use needle", "sewed the [torn|ragged] [sail|coat|tent]"},
      {"use candle", "melted the ice on the [lock|window]"},
      {"use mirror", "sent a flash of light to the [ship|tower]"},
      {"use drum", "made such a noise that the [bears|robbers] fled"},
      {"use flute", "played until the [giant|dragon] fell asleep"},
      {"use umbrella", "kept [everybody|all of them] dry in the [rain|storm]"},
      {"use axe", "cut the [fallen|dead] tree in two"},
      {"use ladder", "climbed over the [high|stone|castle] wall"},
      {"use horn", "warned the [town|sailors|shepherds] in time"},
      // Paragraphs.
      {"title",
       "[{hero} and the {thing}|The {thing}|{hero}, {friend} and the {thing}|How {hero} found the {thing}|The {thing} "
       "of {hero}|{friend} and the {thing}]"},
      {"start",
       "[[Once upon a time|Long ago|One day|Many years ago|Once] there [was|lived] {a {trait} {child}} [called|named] "
       "{hero}|{hero} was {a {trait} {child}} who lived [near|beside|not far from] the {place}|In {a {look} house} "
       "near the {place} lived {a {trait} {child}} [called|named] {hero}|This is the story of {hero}, {a {trait} "
       "{child}}[ with {a {look}} {object}|]]. [{His} best friend was {friend}, {a {trait} {friend.child}}|{He} had a "
       "friend[ next door|], {friend}, {a {trait} {friend.child}}]. [{hero}|{friend}] [had|kept] {a {look} {pet}} "
       "[called|named] {pet.name}."},
      {"find",
       "[On {day}|One {time}|Early one {time}|While {he} {went} to the {place},|On the way to the {place}] {hero} "
       "[found|saw|discovered|spotted] {a {thing}} {spot}. \"{praise} {tool.name}!\" {said} {hero}. [{He} put it into "
       "{his} {bag.name}|So {he} took it and put it into {his} {bag.name}|Into {his} {bag.name} it went]."},
      {"walk",
       "[{then} |]{hero} put on {his} {clothes} and {went} [{how} |]to the {place}. {friend} put on {friend.his} "
       "{clothes} and [came too|went with {him}|followed {him}|{went} after {him}]. [\"{wow}, [it is cold|I am "
       "tired|wait for me]!\" {said} {friend}. |]"},
      {"weather",
       "{then} [it began to [rain|snow]|a [cold|warm|wild] wind blew|the sun came out|it grew dark|fog hid the "
       "{place}]. [{hero} [held|took] {friend} by the hand|{friend} hid behind {hero}|{pet.name} the {pet} "
       "[shook|shivered|sneezed]|{hero} sang {how} to {friend}], and [both|all] of them [were [not "
       "afraid|glad|happy|quite cheerful] again|laughed]."},
      {"count",
       "[Near|Behind|Beyond] the {place} they [saw|found|met] {n.word} {look} {n.many}. \"{wow}! Let [us|me] count "
       "them,\" {said} {friend}. \"{n.list}!\" [{hero} nodded|{hero} counted too|{He} clapped {his} hands]: there were "
       "{n} {n.many}."},
      {"sum",
       "{hero} had {p} {p.many}, and {friend} gave {him} {q} more. \"{p} and {q} make {p+q},\" {said} "
       "[{hero}|{friend}|{pet.name} the {pet}]. So {he} had {p+q} {p.many}. [{He} ate|{He} lost|{pet.name} ate] {q} of "
       "them, and then there were only {p}[ again|]."},
      {"pack",
       "{friend} [packed|filled] {a {box}}: [first|in went] {a {x}}, then {a {y}}, and last {a {z}}. [\"{wow}, it is "
       "full!\" {said} {friend.he}. |They {went} on to the {place}. |]{then} {friend.he} opened the {box} again, and "
       "out came the {z}, then the {y}, then the {x}."},
      {"magic",
       "At the gate of the {place} [stood|sat|waited] {a {trait} {animal}}. \"[The magic word is|You must say|Remember "
       "the word]: '{word}',\" {said} [the guard|the beast]. {hero} [waited|took a deep breath|laughed|looked at "
       "{friend}] and {said} {how}, \"{word}, {word}!\" [And the gate opened|The gate [swung open|vanished]]. "
       "[{friend} [never forgot|wrote down] the word '{word}'|\"{word},\" {said} {friend}, too]."},
      {"tale",
       "{friend} {said}, \"My {elder} [always|often|once] told me: 'The {animal} (the one with the {look} {part}[| "
       "(and the {look} {part})]) [sleeps|lives|hides|sings|cooks|dances] {spot}.' [Is that true|Do you believe it|Can "
       "that be]?\" [\"[Yes|No|Maybe|Of course],\" {said} {hero}[ {how}|].|{hero} [only laughed|did not know|thought "
       "about it].]"},
      {"days",
       "On {day.1} {hero} [drew|painted|built|made|baked] {a {look} {object}}. On {day.2} {friend} "
       "[broke|lost|sold|hid] it. On {day.3} {friend.he} [was sorry|said sorry|cried] and gave {him} {a {look} "
       "{object}} [instead|for it]."},
      {"hide",
       "{friend} hid the {x} {x.spot}. {hero} looked {spot.1}[, but there was only {a {look} {object}}|: nothing]. "
       "{He} looked {spot.2}[: only {a {animal}}|, but no {x}]. {then} {he} looked {x.spot}, and there was the {x}!"},
      {"swap",
       "{hero} had {a {x}} and {friend} had {a {y}}. \"[Shall we swap?|Do you want to swap?|Let us swap!]\" {said} "
       "[{hero}|{friend}]. So {hero} gave away the {x} and got the {y}. {friend} [was happy with {friend.his}|loved "
       "{friend.his}|kissed {friend.his}|took {friend.his}] {x}, and {he} [was happy with {his}|loved {his}|took "
       "{his}] {y}."},
      {"race",
       "{r1}, {r2} and {r3} ran a race to the {place}. {r2} was [fast|quick], but {r1} was [faster|quicker]. {r3} "
       "[fell|stopped|got lost] {spot} and came last. So {r1} won, {r2} was second and {r3} was third."},
      {"ask",
       "\"Is it [bigger|smaller|older|slower] than {a {animal}}?\" asked {friend}. \"[Yes|No],\" {said} {hero}. \"Is "
       "it {look}?\" \"[Yes|No|Not quite].\" \"Then it must be {a {x}}!\" \"[Right|Yes], it is the {x},\" {said} "
       "{hero} {how}."},
      {"use",
       "{then} they came to the {place}, and there was [trouble|a problem|no way on]. [{friend} [sat "
       "down|wept|sighed]|\"What now?\" asked {friend}], but {hero} {how} took the {tool.name} out of {his} "
       "{bag.name}. With the {thing} {he} {tool.use}. \"[Thank you|Well done|Bravo], {hero}!\" {said} {friend}."},
      {"home",
       "[In the evening|At night|When the sun went down|At last] {hero} [told {his} {elder} [everything|about the "
       "{thing}|what had happened]|showed {his} {elder} the {thing}]. [{He} put the {tool.name} {spot}|{friend} and "
       "{pet.name} fell asleep {spot}|{pet.name} the {pet} [slept|snored] {spot}], and {how} {he} went to bed. [They "
       "were friends for ever. |All was well. |]"},
      {"end", "[So ends|This was|That was] \"{title.name}\"."},
  };
  return all;
}

}  // namespace normlab
