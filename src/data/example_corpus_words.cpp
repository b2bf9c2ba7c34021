// The cast and the things of the example stories. Fields of an entry are separated by ';'.
#include "data/example_corpus_grammar.h"

namespace tera {

// clang-format off
const char* const example_corpus_words = R"(
%girl Anna, Lily, Mia, Emma, Rosa, Nora, Ella, Zoe, Maya, Lucy, Clara, Ivy, Sara, Ruby, Hana, Leila, Greta, Tess, Amina, Julia
%boy Tom, Ben, Max, Leo, Sam, Finn, Jack, Oscar, Hugo, Omar, Paul, Noah, Luca, Theo, Adam, Ravi, Karl, Ned, Eli, Jonas
%she_animal Hazel, Fern, Tilly, Clover, Willow, Poppy, Daisy, Olive, Pearl, Bella, Penny, Wren
%he_animal Pip, Bramble, Rusty, Dusty, Moss, Biscuit, Bruno, Otto, Flint, Toby, Milo, Gus
%animal_kind fox, rabbit, bear, mouse, hedgehog, frog, squirrel, duck, badger, turtle, otter, hare, owl, mole, beaver, deer
%child_nature little, young, cheerful, curious, shy, brave, clever, kind, quiet, dreamy
%animal_nature little, young, small, cheerful, curious, shy, brave, clever, gentle, quiet

%relation
{hero.his} mother;mother;Mama;she;her;her
{hero.his} father;father;Papa;he;him;his
{hero.his} grandmother;grandmother;Grandma;she;her;her
{hero.his} grandfather;grandfather;Grandpa;he;him;his
{hero.his} aunt;aunt;Aunt Rose;she;her;her
{hero.his} uncle;uncle;Uncle Fred;he;him;his

%parent
{hero.his} mother;mother;Mama;she;her;her
{hero.his} father;father;Papa;he;him;his

%grandparent
{hero.his} grandmother;grandmother;Grandma;she;her;her
{hero.his} grandfather;grandfather;Grandpa;he;him;his

%grown
the baker;baker;sir;he;him;his
the farmer;farmer;sir;he;him;his
the gardener;gardener;sir;he;him;his
the miller;miller;sir;he;him;his
the shopkeeper;shopkeeper;madam;she;her;her
the teacher;teacher;madam;she;her;her
the doctor;doctor;madam;she;her;her
the old sailor;sailor;sir;he;him;his
the carpenter;carpenter;sir;he;him;his
the old woman next door;old woman;madam;she;her;her
the weaver;weaver;madam;she;her;her

%colour red, blue, green, yellow, white, brown, silver, golden, orange, purple
%look small, old, bright, shiny, pretty, new, round, big, little

%toy kite, ball, wooden boat, doll, teddy bear, toy train, drum, spinning top, paper plane, whistle, hat, scarf, lantern, bucket, marble
%treasure ring, key, coin, button, necklace, bell, feather, shell, stone, music box, watch, medal
%clothing hat, scarf, cap, coat
%fragile vase, cup, plate, teapot, bowl, jar, clock, lamp, mirror, picture frame
%hiding under the old bench, behind a big rock, in the tall grass, under a pile of leaves, behind the fence, inside a hollow log, between two roots of the oak tree, under a bush, next to the stone wall, beside the path
%flower rose, sunflower, tulip, daisy, bean plant, apple tree, pumpkin, tomato plant, strawberry plant, cherry tree
%instrument flute, drum, violin, trumpet, guitar, harp
%pet kitten, puppy, duckling, lamb, baby bird, baby rabbit, baby goat
%small_animal mouse, hedgehog, squirrel, cat, rabbit, raccoon
%insect butterfly, dragonfly, ladybug, firefly, bee

%food
a loaf of bread;the bread;it
a pot of soup;the soup;it
an apple pie;the pie;it
a basket of cherries;the cherries;them
a plate of cookies;the cookies;them
a bowl of porridge;the porridge;it
a honey cake;the cake;it
a bag of nuts;the nuts;them
a basket of apples;the apples;them
a jar of jam;the jam;it
a piece of cheese;the cheese;it
some pancakes;the pancakes;them

%baked
a loaf of bread;the bread;it
an apple pie;the pie;it
a cherry pie;the pie;it
a plate of cookies;the cookies;them
a honey cake;the cake;it
a chocolate cake;the cake;it
twelve little rolls;the rolls;them

%outside
in the forest;to the forest;the forest
by the river;to the river;the river
in the meadow;to the meadow;the meadow
on the hill;to the hill;the hill
in the park;to the park;the park
at the beach;to the beach;the beach
in the garden;to the garden;the garden
near the lake;to the lake;the lake
in the orchard;to the orchard;the orchard
by the old bridge;to the old bridge;the old bridge

%ruler
the king;a king;king;my king;he
the queen;a queen;queen;my queen;she
the old king;an old king;king;my king;he
the young queen;a young queen;queen;my queen;she

%riddle
What is faster than the wind?;a thought
What grows bigger, the more you take away from it?;a hole
What gets wetter, the more it dries?;a towel
What has hands but cannot clap?;a clock
What has teeth but cannot bite?;a comb
What has a neck but no head?;a bottle
What goes up and never comes down?;my age
What has many leaves but is not a tree?;a book
What runs all day but never gets tired?;a river
What can you break without touching it?;a promise

%net net, rope trap
%trouble
I have a thorn in my foot, and I cannot reach it.;took hold of the thorn with both hands and pulled it out with a jerk
I have a terrible toothache, and I cannot sleep.;found a bone between two big teeth and pulled it out with the rope
I have lost my voice from shouting, because I am so lonely.;sat down, shared some tea with the dragon and told it stories all night long
A splinter is stuck under my wing, and I cannot fly.;climbed onto the dragon's back and carefully pulled out the splinter

%skill
ride a bicycle;riding a bicycle;rode the bicycle
swim;swimming;swam across the pond
whistle;whistling;whistled a whole song
skate on the ice;skating;skated all around the lake
climb the old oak tree;climbing;climbed to the top of the tree
fly a kite;flying the kite;flew the kite high above the roofs
read;reading;read a whole page aloud
bake bread;baking;baked a fine loaf of bread
juggle;juggling;juggled three apples
jump across the stream;jumping;jumped across the stream
draw a horse;drawing;drew a beautiful horse
catch a ball;catching;caught every ball
)";
// clang-format on

}  // namespace tera
