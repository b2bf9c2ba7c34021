// Stories of home, friends and small troubles.
#include "data/example_corpus_grammar.h"

namespace tera {

// clang-format off
const char* const example_corpus_plots_home = R"TEXT(
#plot lost_toy: hero=child helper=child thing=toy place=outside spot=hiding
<intro> {hero} had a {thing}, and {hero.he} loved it very much. [{hero.he} took it everywhere.|It was a gift from {hero.his} grandmother.|{hero.he} had found it on {hero.his} birthday, next to the cake.|]
<day>, {hero} went {place.to} to play with the {thing.noun}. <weather> [{hero} played until [noon|{hero.he} was tired|the sun was low].|{hero} ran and played and forgot the time.]
-
But when it was time to go home, the {thing.noun} was gone. <look> <sad>
<later>, {helper} came along. "Why are you so sad?" [asked {helper}|{helper} asked]. "I have lost my {thing.noun}," said {hero}. [ "I have looked everywhere."|] "Do not worry," said {helper}. "[I will help you|We will find it together|Four eyes see more than two]."
-
They [searched|looked] {place} together. [They looked behind every tree.|They asked a bird, but the bird did not know.|They walked slowly and looked at the ground.|] At last {helper} [saw something {spot}|looked {spot}]. "[Is this it?|Look over there!|What is this?]" {helper.he} [called|cried|asked]. It was the {thing.noun}!
<happy> <thanks> [Then the two of them played together until evening.|{hero} let {helper} play with the {thing.noun} all the way home.] <lesson_friend> [<end>|<night>|]

#plot broken: hero=child elder=relation thing=fragile
<intro> [At home, {elder} had|{elder} had] a {thing} that [was very old|stood by the window|everybody loved|had come from far away].
"Please be careful with the {thing.noun}," {elder} always said. <day>, {hero} was playing [with a ball in the house|too close to the table|a wild game in the kitchen|near the shelf], [and crash!|when suddenly there was a loud crash.] ^the {thing.noun} fell [to the floor|down] and broke into [two|three|many|a hundred] pieces.
-
<worried> [First {hero} wanted to hide the pieces [under the bed|behind the door|in the garden].|{hero} thought, "I could say that the cat did it."|For a moment {hero.he} wanted to run away.] But [that did not feel right|{hero} knew that it would be wrong|a small voice inside {hero.him} said no].
So {hero} went to {elder}. "{elder.call}, I broke your {thing.noun}," {hero.he} said [quietly|with tears in {hero.his} eyes|in a small voice]. "I am very sorry."
-
{elder} looked at the pieces and was quiet for a moment. Then {elder.he} [took {hero} in {elder.his} arms|smiled|put a hand on {hero.his} shoulder]. "Thank you for telling me the truth," {elder.he} said. "[A {thing.noun} can be mended|The {thing.noun} is only a thing|Things can break], but [trust is worth much more|I am glad that you are honest]."
[Together they glued the pieces, one by one.|They spent the whole afternoon with glue and patience.] [The {thing.noun} was not perfect, but {hero} thought it was even more beautiful now.|In the end, the {thing.noun} stood in its old place again.] <lesson_truth> [<night>|<end>|]

#plot rainy_day: hero=child helper=child elder=parent place=outside
<intro> <day>, {hero} wanted to go {place.to} with {hero.his} friend {helper}. But when {hero.he} looked out of the window, it was raining. [It rained and rained.|The rain fell on the roof like little drums.|Big drops ran down the glass.]
<sad> "[Now the day is ruined|Now we cannot play|I hate rain]," {hero} said. {elder} [smiled|shook {elder.his} head and smiled]. "[There is no bad weather for a good idea|A rainy day can be fun too|Rain is only water]," {elder.he} said.
-
[<later>|soon], {helper} came in with wet shoes and a big smile. <think> <idea>
"Let us build [a castle|a ship|a cave|a little house] out of [chairs and blankets|boxes|pillows]!" {hero} said. They worked [all morning|for an hour|very hard]. [{hero} was the captain and {helper} was the cook.|{hero} was the king and {helper} was the dragon.|{helper} held the blanket and {hero} tied the knots.|They painted a sign and hung it over the door.]
{elder} brought them [warm milk and cookies|hot soup|apples and bread|tea and cake]. They told each other [funny|scary|long] stories and laughed until their stomachs hurt.
-
[When they looked out again, the rain had stopped.|In the evening the sun came out.] There was a big rainbow [over the hills|above the roofs|in the sky]. "[I did not even notice|Look how beautiful it is]," said {hero}. "This was [the best rainy day ever|even better than a sunny day]!" [<end>|<night>|<lesson_friend>]

#plot found_pet: hero=child elder=relation pet=pet place=outside spot=hiding
<intro> <day>, {hero} was walking {place} when {hero.he} heard a [small|soft|sad] sound. [{hero} stopped and listened.|"What was that?" {hero.he} thought.] {spot}, there was a little {pet}. It was [cold and wet|shaking with fear|all alone|hungry and tired].
"You poor little thing," said {hero}. [{hero.he} picked it up gently|{hero.he} wrapped it in {hero.his} scarf|{hero.he} held it close to keep it warm] and carried it home.
-
"{elder.call}, look what I found!" {hero} called. {elder} brought [a warm blanket|a bowl of milk|some water and a soft towel|a box with straw]. [They fed the {pet} and let it rest by the fire.|The {pet} ate a little and fell asleep.] "May I keep it?" asked {hero}. {elder} [thought for a moment|looked at {hero.him} kindly]. "[Somewhere its mother is looking for it|I think its family misses it]," {elder.he} said. "We must [take it back|look for her] tomorrow."
-
<sad> But {hero} knew that {elder} was right. The next morning, they went back {place.to}. [They waited quietly behind a tree.|They walked slowly and listened.] Then they heard a loud call. It was the mother! The {pet} [ran to her as fast as it could|called back with all its might|jumped out of {hero.his} arms].
[Before they left, the {pet} looked back at {hero} once more.|The mother looked at {hero} as if she wanted to say thank you.] {hero} [waved|waved and smiled], and {hero.his} eyes were wet, but [{hero.he} was happy|{hero.his} heart was glad]. [After that, {hero} often saw the {pet} {place}, and it grew bigger every week.|] <lesson_kind> [<end>|<night>|]

#plot dark_night: hero=someone elder=parent
<intro> {hero} was [brave|not afraid of anything] during the day, but at night {hero.he} was afraid of the dark. One night, {hero.he} [woke up suddenly|could not sleep|lay awake in bed]. [Outside, the wind was howling.|The house was very quiet.|The moon was behind the clouds.]
Then {hero.he} heard a [strange|scary|soft] sound. [Tap, tap, tap.|Scratch, scratch, scratch.|Creak, creak, creak.] "[Who is there|What is that]?" {hero} whispered. Nobody answered. [{hero} pulled the blanket over {hero.his} head.|{hero} held {hero.his} pillow very tight.] <worried>
-
"{elder.call}!" {hero} called. {elder} came with a [candle|small lamp|lantern]. "What is wrong?" {elder.he} asked. "There is [a monster|a ghost|something terrible] at the window," said {hero}. "[Let us look together|Then we should say hello|Let us see]," said {elder}, and took {hero.his} hand.
[slowly|step by step|very quietly], they went to the window and looked out. It was only [a branch that the wind moved against the glass|the old gate, which moved in the wind|a cat that wanted to come in|an owl that sat on the roof]. {hero} [began to laugh|had to laugh|laughed out loud]. "[Is that all?|So that is my monster!|You are not scary at all!]" {hero.he} said.
-
"The night is only the day without its light," said {elder}. [They looked at the stars together for a while.|{elder} showed {hero.him} the brightest star.|{elder.he} left the door open a little.] <happy> Soon {hero} was fast asleep. [From that night on, {hero} was not afraid of the dark anymore.|The next time {hero} heard a strange sound, {hero.he} got up and looked for {hero.himself}.]

#plot learn_skill: hero=someone helper=other skill=skill
<intro> More than anything, {hero} wanted to learn to {skill}. [All {hero.his} friends could do it already.|{hero.his} big brother made it look so easy.|{hero.he} dreamed about it every night.]
<day>, {hero} tried it for the first time. [It did not go well.|It was much harder than it looked.|It went wrong at once.] [{hero} tried again and failed again.|Some of the others laughed.|After an hour, {hero} was tired and cross.|] "I will never learn it," {hero.he} said. <sad>
-
{helper} saw it and came over. "[When I began|On my first day|In the beginning], I was worse than you," {helper.he} said. "Do you know what helped me? [I practiced a little every day|I tried a hundred times|I did not stop after the first mistake]." "[Really|Is that true]?" asked {hero}. "It is true," said {helper}. "[Come on, I will show you|Let us practice together|I will help you]."
So they practiced [every day after lunch|every morning|until the sun went down]. [On Monday, it was a little better.|After a few days, it went a little better.] [Sometimes {hero} wanted to give up, but {helper} cheered for {hero.him}.|{hero} did not give up.|{hero} made many mistakes, and each one was a little smaller.]
-
Then, [one week later|on a bright morning|one fine day], it happened. {hero} took a deep breath, and {hero.he} {skill.did}! "[I did it|Look at me|It works]!" {hero.he} shouted. {helper} [cheered|clapped|laughed with joy]. <happy> <lesson_try> [<end>|<night>|]

#plot surprise: hero=someone helper=other elder=parent food=food thing=toy
<intro> It was {hero.his} birthday. {hero} woke up early and ran [downstairs|to the kitchen]. But {elder} only said, "Good morning," and [went on working|looked out of the window|drank some tea].
"[Has everybody forgotten my birthday|Does nobody remember]?" {hero} thought. {hero.he} went to see {helper}. "Do you know what day it is?" {hero.he} asked. "[It is a normal day, I think|I have no time today, sorry]," said {helper}, and [ran away|closed the door|hurried off]. <sad>
-
All day long {hero} [walked around alone|sat by the river and threw stones into the water|sat under a tree]. [Nobody came to play with {hero.him}.|It was the longest day of {hero.his} life.|] When it got dark, {hero.he} went home slowly. The house was dark too. {hero} opened the door.
"Surprise!" [many voices shouted|everybody shouted|they all called]. The lights went on, and there were {elder}, {helper} and all {hero.his} friends! [There were paper stars on the walls.|There were candles and flowers everywhere.|] On the table stood {food}. "We wanted to [surprise you|keep it a secret]," said {helper} with a grin. "[It was very hard|I almost told you this morning]!"
-
<happy> {helper} gave {hero.him} a {thing}. {elder} [sang a song|lit the candles|told a funny story], and they [danced|played games|laughed] until midnight. "[You did not forget me|This is the best birthday of my life]," said {hero}. "[How could we?|We could never forget you!]" said {elder}. [<end>|<night>|]

#plot quarrel: hero=someone helper=other thing=toy place=outside
<intro> {hero.his} best friend was {helper}. They [played together every day|were always together|did everything together]. <day>, they found a {thing} {place}. "[It is mine|I saw it first]!" said {hero}. "No, [it is mine|I touched it first]!" said {helper}.
They [pulled and pulled|shouted at each other|pulled from both sides], until [the {thing.noun} fell into the mud|the {thing.noun} broke|both of them fell down]. "[This is your fault|Look what you did]!" they both shouted. They went home [in different directions|without a word], and both of them were angry.
-
[The next day|for two days], {hero} played alone. But [it was no fun|the games were boring without {helper}|the day was long and gray]. [{hero} thought about the {thing.noun}, and then {hero.he} thought about {helper}.|"What is a {thing.noun} without a friend?" {hero.he} thought.] <sad> <idea>
{hero} [mended the {thing.noun}|cleaned the {thing.noun}] and walked to {helper.his} house. On the way, {hero.he} met {helper}, who was coming to see {hero.him}! "I am sorry," they both said at the same time. Then they laughed.
-
"[You can have it|Take it]," said {hero}. "No, you take it," said {helper}. "[Then it belongs to both of us|Let us share it]," said {hero}. And that is what they did. [{hero} kept it on one day, and {helper} on the next.|They kept it in a secret place that only they knew.] <lesson_friend> [<end>|]

#plot thief: hero=child elder=relation food=baked pet=small_animal
<intro> <day>, {elder} baked {food} and put {food.it} on the [window sill|kitchen table|shelf] to cool. But when {elder.he} came back, {food.the} had disappeared! "Who took {food.the}?" {elder.he} asked. "It was not me," said {hero}. "But I will find the thief!"
{hero} became a detective. {hero.he} took a [big|small|round] [magnifying glass|notebook|lamp] and looked for [clues|tracks|traces]. [There were crumbs on the floor.|There was a small wet spot on the floor.|There was a strange mark on the wall.] A trail led [out of the door|through the window] and [across the yard|into the garden|behind the barn].
-
{hero} followed the trail [on tiptoe|quietly|step by step]. [Once {hero.he} lost it, but then {hero.he} found it again next to the well.|It went past the well and under the fence.|] At the end of the trail there was [an old box|a little hole|a pile of straw]. Something was moving inside! {hero} [held {hero.his} breath|opened it slowly|bent down] and saw a {pet} with [three|four|two] hungry babies. They were eating {food.the}!
"So it was you," said {hero}. [The little ones looked at {hero.him} with big eyes.|They were so thin that {hero} could not be angry.] {hero} ran back and told {elder} everything.
-
{elder} [laughed|shook {elder.his} head and laughed]. "Well," {elder.he} said, "[a hungry mother must feed her children|then we need more food in this house|I will simply make more]." From that day on, {hero} put [a little bowl|some bread|a small plate] behind the house every evening, and nothing disappeared from the kitchen again. <lesson_kind>

#plot letter: hero=child elder=grandparent thing=treasure
<intro> {hero.his} {elder.kind} lived far away, [on the other side of the mountains|in a town by the sea|three days by train]. {hero} missed {elder.him}. <day>, {hero} [took a pen and paper|sat down at the table] and wrote a letter.
"Dear {elder.call}," {hero.he} wrote, "[I can swim now|I have lost a tooth|we have a new cat|the apples are ripe|I can read now]. [When will you visit us|Do you still tell such good stories|Is it raining where you live]? I miss you. Your {hero}." {hero.he} [drew a picture of the house|put a pressed flower in the envelope|drew a big heart] and took the letter to the post office.
-
Then {hero} waited. [One day passed, then two, then three.|Every morning {hero.he} ran to the gate to meet the mailman.|A whole week passed.] "Nothing today," said the mailman. <sad>
But [on the seventh day|one morning|on Friday], there was a knock at the door. {hero} opened it. It was not the mailman. It was {elder}, with a big bag in {elder.his} hand! "Your letter was so nice," {elder.he} said, "that I wanted to bring the answer myself."
-
{hero} [jumped into {elder.his} arms|hugged {elder.him} as hard as {hero.he} could]. {elder} [opened the bag|reached into {elder.his} pocket] and gave {hero.him} a {thing}. "[I have kept it for you|It was mine when I was young]," {elder.he} said. They sat [by the fire|in the garden|on the bench] and talked until the stars came out. <happy> [<end>|]
)TEXT";
// clang-format on

}  // namespace tera
