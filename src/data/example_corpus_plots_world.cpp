// Stories of village, field and sea.
#include "data/example_corpus_grammar.h"

namespace tera {

// clang-format off
const char* const example_corpus_plots_world = R"TEXT(
#plot share_food: hero=someone helper=other food=food place=outside
<intro> <day>, {hero} packed {food} and went {place.to}. <weather> {hero} was just about to eat when {hero.he} saw {helper}, who was sitting alone [on a stone|under a tree|by the path].
"[Hello|Good day], {helper}," said {hero}. "[Are you not hungry|Why do you look so sad]?" "[I have had nothing to eat since yesterday|I have no lunch today|I lost my lunch on the way]," said {helper}. {hero} looked at {food.the}. [There was not very much.|It was {hero.his} favorite food.|{hero.his} stomach was growling.]
-
But then {hero} [smiled|moved over|sat down next to {helper.him}]. "[Half of it is yours|Come, eat with me|There is enough for two]," {hero.he} said. They ate together, and {helper} told {hero.him} [about the sea|funny stories|about {helper.his} long journey]. [It was the best lunch that {hero} could remember.|Somehow, half was enough.]
[On the way home|a few days later|the next week], {hero} [slipped and fell into a deep ditch|got caught in a bush with long thorns|lost the way in the fog]. "Help!" {hero.he} called. [Nobody heard {hero.him}.|For a long time nobody came.] Then somebody came running. It was {helper}!
-
{helper} [helped {hero.him}|stayed with {hero.him}|took {hero.him} by the hand] and brought {hero.him} safely home. "How can I thank you?" asked {hero}. "You already did," said {helper}. "[You shared your lunch with me|You gave me half of your food when I was hungry]." <lesson_share> [<end>|]

#plot storm: hero=child helper=grown elder=parent
<intro> One evening, the sky turned [black|dark green|gray as stone]. "[A storm is coming|Close the windows]," said {elder}. [Soon the wind was roaring.|Thunder rolled over the hills.] {hero} sat by the window and watched the trees bend. There was a bright flash, and then a [great|terrible|loud] crash.
In the morning, the storm was over. {hero} went outside. [Branches lay everywhere.|The fence was broken.|There were puddles as big as ponds.] A big tree had fallen [on the roof|across the door|on the wall] of the house where {helper} lived! <worried>
-
{hero} ran over at once. {helper} was [standing in front of the house|sitting on the steps|looking at the broken roof]. "[I cannot lift this tree alone|I will never be able to repair this|I am too old for so much work]," {helper.he} said [sadly|and sighed]. "You are not alone," said {hero}. {hero.he} ran from house to house and knocked on every door. "Please come," {hero.he} said, "we have to help!"
They all came: [the neighbors, the teacher and even the mayor|young and old|everybody who had two hands]. [Some brought saws and ropes.|Somebody brought a ladder and nails.] {hero} [carried the small branches|held the ladder|gave everybody water to drink]. They worked all day, and by evening [the roof was whole again|the tree was gone and the wall stood straight].
-
"[I do not know how to thank you|You have saved my house]," said {helper}, and {helper.his} voice shook. [{helper.he} cooked a huge pot of soup, and everybody ate together in the street.|Then they lit a fire and sang songs until late at night.] "[All this because one child knocked on a door|You have a brave heart]," said {elder}. {hero} [turned red|smiled|was proud and very tired]. <lesson_kind>

#plot seed: hero=someone elder=grandparent plant=flower
<intro> <day>, {elder} gave {hero} a [tiny|small|brown] seed. "[Take good care of it|Plant it and be patient]," {elder.he} said. {hero} [dug a small hole|made a hole in the earth], put the seed inside and [covered it with soil|gave it some water].
The next morning, {hero} ran outside. Nothing. [The day after that, still nothing.|On the third day, nothing.] "[It does not work|My seed is asleep|Maybe it is broken]," {hero} said. "[Good things take time|You cannot pull a plant out of the ground|Sleep is good for seeds]," said {elder}.
-
So {hero} waited. {hero.he} gave it water [every morning|when the sun was hot] and [pulled out the weeds|sang little songs to it|told it stories|chased the birds away]. [A week passed.|The days passed, and then the weeks.] {hero} almost forgot to hope.
Then, [on a rainy morning|one morning in May|one bright day], there was a tiny green leaf! "It is alive!" shouted {hero}. [The plant grew and grew.|Every day it was a little taller.] First it was as [tall as a finger|small as a spoon], then as tall as {hero}.
-
In the summer, it was the most beautiful {plant} in the whole village. [Bees and butterflies came to visit it.|People stopped at the fence to look at it.] "How did you do it?" they asked. "[With water and patience|I only waited|I did a little every day]," said {hero}. {elder} smiled and gave {hero.him} [another seed|a whole bag of seeds]. <lesson_try>

#plot market: hero=child elder=relation helper=grown food=food
<intro> <day>, {elder} gave {hero} [a silver coin|three coins|a shiny coin] and said, "Go to the market and buy {food}, please. And do not lose the money!" {hero} [put the money in {hero.his} pocket|held the money very tight] and walked to town.
The market was full of people and colors. There were [baskets of plums and pears|fish as long as {hero.his} arm|mountains of cheese], and somebody was playing [a flute|a violin|a drum]. {hero} [looked at everything|listened to the music for a while|stopped at every table]. But when {hero.he} wanted to pay, {hero.his} pocket was empty. There was a hole in it!
-
<worried> {hero} walked back the same way and looked at the ground. [No money here, no money there.|{hero.he} looked between the stones and under the tables.] Then {hero.he} heard a voice. "Are you looking for this?" It was {helper}, who was holding the money in {helper.his} hand. "[I saw it fall|It rolled right in front of my feet]," {helper.he} said.
"Thank you!" cried {hero}. "[You could have kept it|Not everybody would give it back]." {helper} [laughed|shook {helper.his} head]. "[What is not mine is not mine|Honest people sleep better]," {helper.he} said. {hero} wanted to do something in return, so {hero.he} helped {helper.him} [carry some heavy boxes|sweep the floor|clean the windows] for an hour.
-
At last {hero} bought {food} and came home in the evening. "[You were gone a long time!|Where have you been so long?]" said {elder}. {hero} told {elder.him} everything. {elder} [laughed|nodded] and took a needle and thread. "First we eat," {elder.he} said, "and then [I will show you how to mend a pocket|we will mend that hole together]." [<end>|<night>|]

#plot new_child: hero=child helper=child grown=grown place=outside
<intro> There was a new child at school. {helper.he} was called {helper}, and {helper.he} came from [a country far away|a town on the other side of the sea|the mountains]. {helper} [did not speak much|sat alone at the last table|always looked at the floor]. In the break, everybody played, but {helper} stood alone [by the wall|under the big tree|next to the gate].
{hero} [watched {helper.him} for a while|saw it and stopped playing]. "[I remember my first day|It must be hard to be new]," {hero.he} thought. [{hero} was shy too, but {hero.he} took a deep breath.|Some of the others laughed, but {hero} did not care.] {hero.he} went over and said, "Hello, I am {hero}. Would you like to [play with us|share my apple|see my marbles|draw with me]?"
-
{helper} looked up. "[Yes, please|I would like that]," {helper.he} said [quietly|and smiled for the first time]. They [played all through the break|drew a picture together|sat on the wall and talked]. {helper} knew [a game that nobody had ever seen|how to fold a bird out of paper|a song with a very funny melody], and soon all the children wanted to learn it.
After school, they walked home together. It turned out that {helper} lived [in the same street|just around the corner|in the house behind the church]! "Do you want to go {place.to} with me tomorrow?" asked {hero}. "[I would love to|Oh yes]," said {helper}.
-
That evening, {helper} wrote a letter to {helper.his} [old friends|grandmother]. "[I was afraid of this place|At first I was very lonely]," {helper.he} wrote, "but today I found a friend." <lesson_friend>

#plot lost_way: hero=someone elder=parent bug=insect guide=animal_kind
<intro> "Do not go too far into the forest," {elder} always said. But <day>, {hero} saw a [beautiful|big|bright blue|golden] {bug}. {hero} followed it [over a stream|between the trees|down a narrow path]. [The {bug} flew from flower to flower.|It always stayed just out of reach.] When it finally [flew away over the treetops|disappeared], {hero} looked around. Everything looked strange.
"[Where am I|Which way is home]?" {hero.he} said. [All the trees looked the same.|There was no path anymore.] It was getting dark. <worried> {hero} [called for help, but only the wind answered|walked in a circle and came back to the same rock].
-
Then a {guide} [came out of the bushes|appeared between the trees|stepped onto the path]. "You look lost," it said [kindly|in a deep voice]. "I am," said {hero}. "I followed a {bug}, and now I cannot find my way home." "[That happens to the best of us|The forest is big, and you are small]," said the {guide}. "[Listen. ^do you hear the water? ^the stream runs to your village|Look at the evening star. ^your house lies under it|Do you hear the bell? ^it rings in your village]."
{hero} [listened carefully|looked up|held {hero.his} breath]. And it was true! "Thank you!" {hero.he} said. [The {guide} walked beside {hero.him} a part of the way.|But the {guide} was already gone.] {hero} walked and walked, [over roots and stones|through ferns and tall grass], until {hero.he} saw a light between the trees.
-
{elder} was standing at the door with a lantern. "There you are!" {elder.he} cried and [hugged {hero.him}|took {hero.him} in {elder.his} arms]. "I am sorry," said {hero}. "[I should have listened to you|I went too far]." {elder} [gave {hero.him} hot soup|wrapped {hero.him} in a warm blanket|did not scold {hero.him}]. From that day on, {hero} still looked at every {bug}, but {hero.he} never [left the path|went too far] again. [<night>|]

#plot lighthouse: hero=child elder=grandparent
{hero} lived in a lighthouse with {elder}. Every evening, {elder} [climbed the two hundred steps|went up the stairs] and lit the great lamp, so that the ships could find their way. "[A small light can save a big ship|The lamp must never go out]," {elder.he} always said.
One night, {elder} was ill and lay in bed with a fever. [A thick fog came from the sea.|A storm was coming, and the waves were as high as houses.] {hero} looked up and saw that the lamp was dark! And far out, {hero.he} heard [the horn of a ship|a ship's bell]. <worried>
-
"I must do it," {hero} said. {hero.he} took [the matches|a small lantern|a can of oil] and climbed the stairs. [The wind screamed around the tower.|It was so dark that {hero.he} had to feel the way with {hero.his} hands.] {hero} counted the steps: fifty, one hundred, two hundred. At the top, {hero.his} hands were shaking. The first match went out. The second match went out. "Please," said {hero}, and lit the [third|last] one.
The lamp began to glow! A long white beam went out over the black water. The horn sounded again, and slowly, very slowly, the ship turned [away from the rocks|toward the harbor]. {hero} stayed awake all night and watched the light.
-
In the morning, there was a knock at the door. It was the captain. "Who lit the lamp last night?" he asked. "[There are sixty people on my ship, and they are all alive|Without it, we would have hit the rocks]." "I did," said {hero}. The captain [took off his hat|bowed] and gave {hero.him} [his silver whistle|his own compass|a flag from his ship]. {elder} [smiled from the bed|wiped a tear from {elder.his} eye]. "Now you are a real keeper of the light," {elder.he} said.

#plot salty_bread: hero=child helper=grown food=baked
<intro> {hero} wanted to become a cook. [Every day {hero.he} watched how others cooked.|{hero.he} had a white hat and a wooden spoon.] <day>, {hero} wanted to make {food} all alone. {hero.he} took [flour, eggs and milk|a big bowl and a spoon|everything {hero.he} could find in the kitchen].
"[A little sugar makes everything better|Now some sugar]," {hero} said, and put in three big spoons of white powder. But it was not sugar. It was salt! {hero} did not notice. {hero.he} [hummed a song|waited by the oven] until it smelled wonderful.
-
Then {helper} came to visit. "[That smells good|What a lovely smell]!" {helper.he} said. {hero} proudly gave {helper.him} a big piece. {helper} took a bite. {helper.his} face turned red. {helper.his} eyes became very big. [{helper.he} drank a whole jug of water.|"Water!" {helper.he} cried.] "Is something wrong?" asked {hero}. Then {hero} took a bite as well, and ran to the well.
<sad> "I am a terrible cook," said {hero}. {helper} [laughed and sat down|put an arm around {hero.him}]. "[When I was young, I once used soap instead of butter|My first cake was as hard as a brick|My first soup made the dog run away]," {helper.he} said. "[Do you know the secret?|There is only one secret.] ^a good cook tastes everything first."
-
They began again from the start. This time {hero} tasted everything: [the sugar, the milk and the flour|first the white powder, then the rest]. When {food.the} came out of the oven, [the whole street smelled it|all the neighbors looked out of their windows]. "[Perfect|Delicious]," said {helper} with a full mouth. <happy> And on the salt jar, {hero} wrote in big letters: "NOT SUGAR". <lesson_try>

#plot snow_day: hero=child helper=child elder=parent thing=clothing
<intro> One winter morning, the whole world was white. It had snowed all night. "Snow!" shouted {hero}. {hero.he} [put on {hero.his} boots|forgot {hero.his} breakfast|grabbed a coat] and ran outside, where {helper} was already waiting.
They built a snowman. They rolled [a big ball, a middle ball and a small ball|three balls, and the biggest one was as tall as {hero}]. [A carrot was the nose and two stones were the eyes.|They used buttons for eyes and a stick for the mouth.] "Something is missing," said {helper}. {hero} thought for a moment. Then {hero.he} gave the snowman {hero.his} own {thing}.
-
In the night, it became very cold. {hero} lay in the warm bed and looked out of the window. "[He is all alone out there|I hope he is not lonely]," {hero.he} said. {elder} smiled. "[Snowmen love the cold|Winter is his home]," {elder.he} said. [In {hero.his} dream, the snowman waved.|{hero} dreamed that the snowman danced in the moonlight.]
Then the weather turned warm. Every day, the snowman grew [smaller|thinner]. One morning, there was only [a puddle|a little water] with the {thing.noun} in it. <sad>
-
"Where did he go?" asked {hero}. "[He became water|He melted], and the water [goes into the river and into the sea|feeds the flowers]," said {elder}. "And one day it will fall as snow again." {hero} [thought about that|nodded slowly]. In the spring, the first flower came out just where the snowman had stood. "[Hello again|Good morning, snowman]," said {hero}, and {helper} laughed. They waited for the next winter together. [<end>|]

#plot boat_trip: hero=child helper=child food=food
<intro> {hero} and {hero.his} friend {helper} [built a boat|found an old boat and painted it blue|made a raft out of logs and rope]. <day>, they [took {food} with them|packed a basket with food] and pushed it into the river. "[We will sail to the sea|We are going to discover the world]!" said {hero}. <weather>
At first everything went well. [A family of ducks swam beside them.|Fish jumped out of the water.|They sang and waved to the cows on the bank.] But after the second bend, there was a bump. The boat stopped. [It was stuck on a sandbank.|It had run onto a sandbank.] They pushed and pulled, but it did not move.
-
"[This is your fault, you were steering|I told you to go left]," said {helper}. "[And you were sleeping|No, you said right]," said {hero}. They sat back to back and did not speak. The sun moved across the sky. <later>, {hero.his} stomach began to growl. {hero} [took out the food|opened the basket], broke everything in two, and gave one half to {helper} without a word.
{helper} looked at it. "[I am sorry|It was not your fault]," {helper.he} said. "[I am sorry too|It was nobody's fault]," said {hero}. <idea> "If we both stand on the same side and rock the boat, it might come free!" They counted to three and rocked. One, two, three! The boat slid back into the water.
-
They did not reach the sea that day. They only came [as far as the old mill|to the next village], where [a kind miller gave them tea|an old fisherman towed them home]. But when they told the story at home, the sandbank was a whale and the river was an ocean. [Nobody believed them, and they did not mind at all.|And in a way, it was all true.] <lesson_friend>

#plot music: hero=someone helper=other tool=instrument
<intro> {hero} had a {tool}. {hero.he} played it all day long, but it sounded terrible. [The birds flew away.|The neighbors closed their windows.|The cat hid under the bed.] "Please stop," everybody said. [Only the old dog stayed, because he could not hear.|]
<sad> {hero} took the {tool} and went to the hill behind the village, where [nobody could hear {hero.him}|only the wind was listening]. There {hero.he} met {helper}, who was [sitting under a tree|watching the clouds]. "[Why did you stop?|Please go on!]" said {helper}. "[I only play wrong notes|Nobody likes my music]," said {hero}.
-
"There are no wrong notes," said {helper}, "there are only notes that [come too early|have lost their way]. [First listen, then play|Play slowly, and listen to each one]." So {hero} listened: to the wind, to the stream, to the bees. Then {hero.he} played one note, slowly and softly. It was beautiful.
From then on, they met on the hill every day. {hero} [practiced one note, then two, then three|played slowly at first and then faster]. When autumn came, {hero.he} could play a whole song.
-
At the harvest festival, the musicians were late, and everybody waited. "[Shall I play something|May I try]?" asked {hero}. People looked at each other and [held their ears|smiled]. But then {hero} began to play. It became very quiet. [Somebody began to dance.|An old couple began to dance, and then everybody danced.] "Who taught you that?" they asked. {hero} looked at {helper} and said, "[A friend who knows how to listen|Someone who did not walk away]." <happy>

#plot robot: hero=child helper=grown thing=treasure
In a workshop full of wheels and wires, {helper} had built a little robot. It could [sweep the floor|carry boxes|count to a million], but it could not [laugh|dream|tell a story]. {hero} came to visit it every day after school. "What are you doing?" the robot asked. "I am laughing," said {hero}. "Why?" asked the robot. "Because something is funny." "[I do not understand. ^what is funny|What is funny]?" asked the robot.
{hero} tried to explain. {hero.he} [told it a joke|made a silly face|put a pot on {hero.his} head]. The robot [blinked with its green lights|turned its head] and said, "I do not see why." "[You have to feel it in your stomach|One day you will know]," said {hero}. "I have no stomach," said the robot.
-
<day>, {hero} lost a {thing} that {hero.he} loved very much. {hero.he} sat in the corner of the workshop and cried. The robot came closer. It [looked for a long time|thought so hard that its wires became warm]. Then it rolled out of the door. It searched [the whole street|under every bench|in the rain], all night long, until it found the {thing.noun}.
In the morning, the robot came back, [covered in mud|wet and dirty], with [a leaf on its head|a flower behind its ear|a snail on its nose]. It held out the {thing.noun}. {hero} looked at it, and began to laugh and cry at the same time. And then a strange sound came out of the robot. [Beep, beep, ha.|Ha, beep, ha.] It was laughing!
-
"[Now I understand|So this is how it feels]," said the robot. "It does not come from the stomach. It comes from [giving somebody a gift|making a friend happy]." {helper} [stood at the door and smiled|shook {helper.his} head]. "I did not build that part," {helper.he} said. "[You did, {hero}|It grew there by itself]."
)TEXT";
// clang-format on

}  // namespace tera
