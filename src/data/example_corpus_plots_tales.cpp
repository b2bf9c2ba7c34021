// Fables and fairy tales.
#include "data/example_corpus_grammar.h"

namespace tera {

// clang-format off
const char* const example_corpus_plots_tales = R"TEXT(
#plot race: hero=animal rival=animal judge=animal_kind place=outside
<intro> {hero} was not very fast, but {hero.he} never gave up. In the same valley lived {rival.intro}, who [always boasted|told everybody how fast {rival.he} was]. "[Nobody can beat me|I am faster than the wind]!" {rival} said every day.
"[Then let us have a race|I will run against you]," said {hero} <day>. All the animals laughed. {rival} laughed the loudest. "[You? Against me? ^that is the best joke of the year|That will be the shortest race in the world]!" {rival.he} said. But the old {judge} drew a line on the ground and said, "You will run from here {place.to} and back. Ready, steady, go!"
-
{rival} shot away like an arrow. {hero} ran slowly and steadily. [One step, and then another step.|{hero.he} did not look left or right.] After a while, {rival} turned around and could not even see {hero}. "[I have plenty of time|I could win this in my sleep]," {rival.he} thought. So {rival.he} [lay down under a tree|stopped to eat some berries and then lay down in the grass], and soon {rival.he} fell asleep.
{hero} was tired, and {hero.his} feet hurt. But {hero.he} went on and on. [{hero.he} passed the tree where {rival} was snoring.|{hero.he} tiptoed past {rival}.] When {rival} woke up, the sun was already low. {rival.he} ran as fast as {rival.he} could, but it was too late. {hero} had just crossed the line!
-
All the animals cheered. {rival} [hung {rival.his} head|was very quiet]. "[You are fast|You have quick legs]," said {hero} kindly, "but [a fast start is not a finish|you forgot to finish]." "You are right," said {rival}. "[I will never boast again.|Will you teach me how to keep going?]" [And from that day on, they often ran together.|The old {judge} smiled.] <lesson_try>

#plot winter_store: hero=animal rival=animal
<intro> All summer long, {hero} worked. {hero.he} gathered [nuts and seeds|berries and roots] and carried them home, one by one. {hero.his} neighbor {rival} [lay in the sun|sang songs all day|danced in the grass]. "[Why do you work so much?|Come and play!]" called {rival}. "[The summer is long|The sun is shining]!" "The winter is long too," said {hero}, and went on.
In the autumn, the leaves fell. {hero} [filled the last corner of {hero.his} house|closed the holes in the walls with moss]. {rival} looked for food, but there was [not much left|almost nothing left]. "[I will start tomorrow|There is still time]," {rival.he} said. But the next morning, the first snow fell.
-
It was a hard winter. The wind blew and the lake froze. {hero} sat [by the fire|in {hero.his} warm home] and ate. Then there was a weak knock at the door. There stood {rival}, thin and [shaking|covered with snow]. "[Please, I am so hungry. ^may I come in|Do you have something to eat]?" {rival.he} asked.
{hero} thought of the long, hot days, and of {rival}, who had only laughed. [Then {hero.he} remembered the songs. They had made the work a little easier.|But {hero.he} also saw how cold {rival} was.] {hero} opened the door wide. "[Come in|Sit by the fire]," {hero.he} said. "[There is enough for two, if we are careful|You can pay me with songs]."
-
So they spent the winter together. {rival} sang in the evenings, and the nights were not so long. When spring came, {rival} was the first to get up. "[Today I will carry the heavy things|Show me how to gather food]," {rival.he} said. They worked side by side, and {rival} sang while they worked. <lesson_share>

#plot riddle: hero=child ruler=ruler thing=treasure first=riddle second=riddle
In a kingdom far away, there lived {ruler.a} who [loved riddles|was always bored|could not sleep at night]. "Whoever can answer my three questions," said {ruler}, "shall have [a chest full of gold|a wish|half of my apples and all of my horses]." [Wise men came from all over the land.|Many knights and scholars came.] But nobody knew the answers.
In that kingdom there was also {hero.intro}. {hero} was poor and owned only a {thing}. "I will try," {hero.he} said. The guards laughed, but they opened the gate. "First question," said {ruler}. "{first}" "{first.answer}," said {hero} at once. {ruler} [raised an eyebrow|nodded slowly].
-
"Second question. {second}" {hero} thought for a moment. {hero.he} looked [out of the window|at the floor|at the ceiling]. "[It must be|I think it is|It is] ~{second.answer}, {ruler.call}," {hero.he} said. [Everybody held their breath.|It was so quiet that you could hear a fly.] "That is right," said {ruler}.
"Now the last question. What is the most precious thing in my kingdom?" The people whispered. "The crown!" said one. "The gold!" said another. {hero} shook {hero.his} head. "[It is the well in the village|It is the bread on the table|It is a good friend]," {hero.he} said, "because [without it, no crown is worth anything|gold alone makes nobody happy]."
-
{ruler} stood up, and was silent for a long time. Then {ruler.he} smiled for the first time in years. "You have answered well," {ruler.he} said. "What do you wish for?" {hero} did not ask for gold. "[Please build a school in our village|Please give seeds to all the farmers|Please build a bridge over the river]," {hero.he} said, "so that everybody gains something." And so it was done. From then on, {hero} came to the castle every Sunday, and they asked each other riddles until evening.

#plot dragon: hero=child helper=grown trouble=trouble
High on a mountain lived a [green|red|huge|terrible] dragon. Every night it [roared so loudly that the windows shook|blew smoke over the village|howled until morning]. The people were afraid. "[It wants to eat us|We must fight it]," said {helper}. [The knights polished their swords, but none of them wanted to go.|Three knights went up, and three knights ran down again.]
In the village lived {hero.intro}. {hero} listened carefully. "[It does not sound angry|That is not an angry roar]," {hero.he} said. "It sounds sad." Nobody believed {hero.him}. So <day>, {hero} packed [some bread and a rope|a blanket and a lamp|a bag full of herbs] and climbed the mountain alone.
-
The cave was dark and [warm|smelled of smoke]. Two big yellow eyes looked at {hero.him}. {hero.his} knees were shaking, but {hero.he} said, "Good evening. Why do you roar every night?" The dragon [blinked|was so surprised that it hiccuped]. "[Nobody has ever asked me that|You are the first one who asks]," it said. "{trouble}"
"Is that all?" said {hero}. "Then let me help you." [The dragon trembled.|The dragon closed its eyes.] {hero} {trouble.cure}. "Oh," said the dragon, and a big tear rolled down its nose. "[That feels wonderful|It does not hurt anymore]!"
-
The next morning, the people saw {hero} [riding through the clouds on the dragon's back|come down the mountain, and the dragon walked behind {hero.him} like a dog]. {helper} [dropped {helper.his} hat|hid behind a barrel]. "It is friendly!" called {hero}. "It only needed help." From that day on, the dragon [lit the ovens of the bakery every morning|kept the village warm in winter|gave the children rides over the valley], and nobody was afraid anymore. <lesson_kind>

#plot wish: hero=child helper=small_animal thing=treasure
<intro> <day>, {hero} found a {thing} [in the sand|in an old well|at the bottom of a box|under a loose stone]. When {hero.he} [rubbed it clean|held it up to the light], a voice said, "You have one wish. Choose well." {hero} nearly dropped it. "A wish!" {hero.he} whispered.
{hero} thought of [toys and sweets|gold and castles|a flying horse]. In the end, {hero.he} said, "I wish that everything I touch turns into [chocolate|candy|cake]!" "[As you wish|So be it]," said the voice. {hero} touched a stone. It turned into [chocolate|something sweet]! {hero} ate and laughed, and touched a [flower|spoon|fence], and ate again.
-
But soon {hero.his} stomach hurt. {hero.he} was thirsty, but the water became sweet and sticky. {hero.his} bed was sticky too. Then {hero.his} little {helper} came running. "No, stay back!" cried {hero}. [The {helper} stopped and looked at {hero.him} sadly.|{hero} hid {hero.his} hands behind {hero.his} back.] {hero} could not pet it. {hero.he} could not hug anybody. <sad>
{hero} took the {thing.noun} and said, "Please take the wish back. [I do not want sweet things anymore|I only want everything to be as it was]." For a long time, nothing happened. Then the voice said, "[You have learned something|That was the better wish]," and it was gone.
-
{hero} touched the [wall|table|door]. It stayed as it was. [Then {hero.he} picked up the {helper} and held it for a very long time.|Then the {helper} jumped into {hero.his} arms, and nothing happened at all, which was wonderful.] That evening, there was only [soup and bread|a bowl of potatoes|some plain rice] for dinner. "[This is the best meal of my life!|May I have some more?]" said {hero}, and meant it. [The {thing.noun} still lies in a drawer, and nobody has touched it since.|]

#plot moon: hero=someone helper=other
<intro> Every night, {hero} looked at the moon. "[It is so close|It is so round and bright]," {hero.he} said. "I want to touch it, just once." {helper} [laughed|shook {helper.his} head]. "[The moon is far away|Nobody can reach the moon]," {helper.he} said.
But {hero} did not give up. First {hero.he} climbed [the highest tree|the tallest hill|the roof of the barn]. The moon was still too high. Then {hero.he} [built a ladder, but the ladder broke, and {hero} landed in a bush|put one box on top of another, but the boxes fell down|jumped as high as {hero.he} could, but it was no use]. "[Are you hurt|What are you doing up there]?" called {helper}. "[Only my pride|I was almost there]," said {hero}.
-
They walked home along the pond. The night was quiet, and the water was smooth like glass. Suddenly {helper} stopped. "Look," {helper.he} whispered. There, in the middle of the pond, lay the moon, [big and silver|bright and round]. {hero} knelt down at the edge. Very gently, {hero.he} put out a hand and touched the water.
The moon [trembled|danced] in a thousand pieces of light, and then it was whole again. "I touched it," said {hero} softly. "[I touched the moon|It was cold and it tickled]." {helper} touched it too, and they both laughed.
-
They sat at the pond until [the moon sank behind the trees|their eyes were heavy]. "[It came down to us|We only had to look down instead of up]," said {hero}. After that, they often went to the pond when the moon was full. [And if you are very quiet, you may see them there.|And nobody ever told them that it was only water.] [<night>|]

#plot lion_small: hero=animal rival=animal thing=net
<intro> {hero} was the smallest of all. [The others often forgot to invite {hero.him}.|"You are too small to help," the others always said.] <day>, {hero} ran [over a big gray hill|across something warm and soft]. But it was not a hill. It was the paw of a lion! The lion woke up and caught {hero.him}.
"Please let me go," said {hero}. "[I am only one small bite|You would not even notice such a small meal]. And maybe one day I can help you." The lion [laughed so hard that the leaves fell from the trees|laughed]. "[You want to help me|What could you do for me]?" But he was in a good mood, so he lifted his paw. "[Run, little one|Go on, then]," he said.
-
[A month later|when the leaves were falling|some weeks later], {hero} heard a terrible roar. All the animals hid. {rival} hid too and said, "[Stay here|Do not go there]!" But {hero} knew that voice. {hero.he} ran toward it. The lion was caught in a [thick|strong] {thing}! The more he pulled, the tighter it became.
"Hold still," said {hero}, and began to bite through the rope. [It took a long time, and {hero.his} teeth hurt.|One knot, two knots, three knots.] At last the {thing} fell open, and the lion was free.
-
The lion looked at {hero} for a long time. "[I laughed at you|I was wrong]," he said. "[You are the strongest of us all|Nobody is too small to be a friend]." [He carried {hero} home on his back, through the middle of the forest, so that everybody could see it.|After that, nobody called {hero} small anymore.] {rival} [stared with an open mouth|was very proud of {hero.him}]. <lesson_kind>

#plot wolf_cry: hero=child helper=grown
<intro> {hero} watched the sheep [on the hill|above the village]. It was [quiet|boring] work. [The sheep ate grass, and the clouds went by.|All day long nothing happened.] <day>, {hero} wanted to have some fun. "Wolf! Wolf!" {hero.he} shouted. "A wolf is eating the sheep!"
{helper} heard it and ran up the hill, and so did [all the neighbors|the whole village]. But there was no wolf. {hero} [laughed|rolled in the grass and laughed]. "[It was only a joke|I wanted to see how fast you are]," {hero.he} said. "[That was not funny|Do not do that again]," said {helper}. But the next day, {hero} did it again, and again everybody came running, and again there was no wolf.
-
Then, one evening, two [yellow|green] eyes shone in the bushes. A real wolf! "Wolf!" shouted {hero}. "Please help me!" Down in the village, the people heard it. "[It is only a joke again|We will not be fooled a third time]," they said, and nobody came.
<worried> {hero} [took a stick and beat on a pot|threw stones|shouted as loudly as {hero.he} could]. The sheep ran in all directions. [At last the wolf turned around and ran into the forest.|The wolf was frightened by the noise and ran away.] But [it was midnight before all the sheep were found|one little lamb was missing, and {hero} looked for it all night].
-
In the morning, {hero} went to {helper}. "[You did not come|I called you]," {hero.he} said. "We did not believe you," said {helper}. "[Who lies once is not heard twice|A liar is not believed, even when he tells the truth]." {hero} [looked at the ground|turned red]. "I am sorry," {hero.he} said. <lesson_truth>

#plot stone_soup: hero=child helper=grown
<intro> {hero} was on a long journey and came to a strange village. {hero.he} was [hungry and tired|cold and hungry]. But the people closed their doors. "[We have nothing ourselves|There is no food here]," they said. {hero} had only [an old pot|a small pot]. <think> <idea>
{hero} made a fire in the middle of the square, filled the pot with water and put in a [smooth|round|gray] stone. "What are you doing?" asked {helper}. "I am making stone soup," said {hero}. "[It is the best soup in the world|You may taste it, of course]. Only a carrot is missing." {helper} was curious. "[I may have a carrot|I think I have one at home]," {helper.he} said, and ran to get it.
-
{hero} [stirred|tasted the soup]. "[Very good|Wonderful]. With an onion, it would be perfect." A woman brought an onion. Somebody else brought [potatoes|beans|a cabbage]. A boy brought [some salt|a piece of meat|some herbs]. Soon the whole village stood around the pot, and it smelled [delicious|wonderful].
Then they all sat down together and ate. [It had been a long time since they had last sat together.|They talked and laughed, and somebody brought a violin.] "[Such a good soup|I cannot believe it]," said {helper}, "and all from a stone!"
-
In the morning, {hero} said goodbye. "[Keep the stone|I will leave you the stone]," {hero.he} said. "[It works whenever everybody brings something|But it only works when you eat together]." {helper} [laughed, because now {helper.he} understood|winked]. And in that village, they still make stone soup every year. <lesson_share>

#plot heavy_turnip: hero=child elder=grandparent pet=small_animal
<intro> <day>, {elder} planted a turnip. It grew and grew until it was [enormous|as big as a cart]. {elder} pulled and pulled, but it did not come out. "{hero}, come and help me!" {elder.he} called. {hero} held on to {elder}, and they pulled together. [The turnip did not move.|It did not move at all.]
They called the neighbor. The neighbor held on to {hero}, {hero} held on to {elder}, and {elder} held on to the turnip. They pulled and pulled. [Still nothing.|It moved a little, but it did not come out.] They called [the dog, and the dog|the goat, and the goat|the cow, and the cow] held on to the neighbor. They all pulled until their faces were red. [The turnip stayed where it was.|Nothing.]
-
Then a tiny {pet} came by. "May I help?" it asked. Everybody laughed. "[You are much too small!|What can you do?]" said the neighbor. But {hero} said, "[Why not? ^we need everybody|Let it try. Every little bit counts]." So the {pet} held on to the tail in front of it. "One, two, three!" called {hero}.
They pulled, and there was a loud pop! The turnip flew out of the ground, and they all fell [on top of each other|backward into the grass]. For a moment nobody said anything. Then they laughed until they cried.
-
{elder} cooked [a huge pot of turnip soup|turnip soup for the whole village]. "[Who was the strongest of us|Who did it in the end]?" asked the neighbor. "[All of us together|Nobody alone]," said {hero}, and gave the first bowl to the {pet}. [<end>|<lesson_friend>]

#plot cloud: hero=animal helper=animal place=outside
<intro> It had not rained for [many weeks|a long time]. [The flowers hung their heads.|The stream was almost dry.] {hero} saw a little white cloud above {place.the}. "Please rain a little," called {hero}. But the cloud said, "[I am too small|I am only a little cloud]. [If I rain, nothing will be left of me|I have only a few drops]."
"[Then let us help you|Maybe we can make you bigger]," said {hero}. {hero.he} asked {helper}. "[We would need a lot of water|Clouds are made of water]," said {helper}. They thought about it all night. In the morning, {hero} called all the animals. "Each of us shall [carry a leaf full of dew up the hill|bring one drop of water to the hill]," {hero.he} said.
-
So they went, one after the other: [the mice and the moles, the birds and the bees|the big ones and the small ones]. They laid the drops in the sun on the highest rock. The sun [shone warmly|rose], and the drops turned into mist, and the mist rose up to the cloud. [The cloud became gray and round.|The cloud grew and grew.] "[That tickles|I feel so heavy]!" it said.
Then the first drop fell on {hero.his} nose. And then it rained! It rained [on the fields and the flowers|on everybody], and the animals danced in the mud. {helper} [sang|stood with an open mouth and drank]. "[You are the best cloud in the sky|Thank you, cloud]!" called {hero}.
-
When the rain was over, the cloud was tiny again. But it was [laughing|shining in the sun]. "[I thought that I would disappear|I was so afraid to give something away]," it said, "but look: now I am [in every flower and every stream|everywhere]." A rainbow stood over {place.the}. <lesson_share>
)TEXT";
// clang-format on

}  // namespace tera
