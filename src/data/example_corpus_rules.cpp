// Sentences that many of the example stories share. They name nobody but {hero}.
#include "data/example_corpus_grammar.h"

namespace tera {

// clang-format off
const char* const example_corpus_rules = R"TEXT(
@intro
Once upon a time, there was {hero.intro}.
Once upon a time, {hero.intro} lived <home>.
There was once {hero.intro}.
Long ago, {hero.intro} lived <home>.
{hero} was {hero.nature} who lived <home>.
This is the story of {hero.intro}.
{hero} lived <home>.

@home
in a small house at the edge of the village
in a yellow house near the river
in a cottage by the sea
on a little farm
in a quiet town
in a white house on top of a hill
in a village between two mountains
in a warm little house beside the forest
in a house with a red roof

@day
one [sunny|bright|warm|cold|windy|quiet|cloudy|fine] [morning|afternoon|day]
one day
one [spring|summer|autumn|winter] [morning|day]
early one morning
on a [sunny|bright|warm|cold|windy|quiet|cloudy] [Monday|Tuesday|Saturday|Sunday]
one [Saturday|Sunday] [morning|afternoon]

@later
[after a while|a little later|soon|before long|some time later|that afternoon|that evening]

@weather
The sun was [shining|warm|high in the sky] and [the birds were singing|the sky was blue|a soft wind was blowing|the bees were humming].
The sky was [clear and blue|full of little white clouds|gray|bright].
A [soft|warm|cool|gentle] wind [blew|was blowing] [through the trees|over the fields|from the sea].
The air smelled of [flowers|fresh grass|rain|warm bread|the sea|pine trees].
It was a [lovely|beautiful|perfect|quiet] day, and nobody was in a hurry.
The [grass|ground] was still wet from the [rain|dew].

@happy
{hero} [was very happy|was so happy|smiled|laughed with joy|felt very proud|clapped {hero.his} hands|jumped for joy|smiled from ear to ear].
{hero} felt [warm inside|happy and proud|as light as a feather].
{hero.his} heart [was full of joy|jumped with joy|was light].
{hero} was so [happy|glad] that {hero.he} [danced in a circle|laughed out loud|began to sing|could not stop smiling].

@sad
{hero} [was very sad|felt sad|began to cry|wanted to cry|sat down and sighed|hung {hero.his} head].
A tear ran down {hero.his} cheek.
{hero.his} heart was heavy.
{hero} felt [very small|very alone|sad and lonely].

@worried
{hero} [was worried|felt worried|began to worry|was afraid|was a little scared|did not know what to do].
{hero.his} heart beat [fast|loudly].
{hero} bit {hero.his} lip and [looked at the ground|thought hard|said nothing].
"Oh no!" said {hero}. "What [shall I do now|am I going to do|now]?"

@think
{hero} thought [for a long time|for a moment|hard|about it all day]. 
{hero} sat down [on a stone|on the steps|under a tree|by the window] and thought.
{hero} scratched {hero.his} head and thought.
{hero} closed {hero.his} eyes and thought [hard|for a while].

@idea
Then {hero} had [an idea|a good idea|a wonderful idea|a clever idea].
Suddenly, {hero} had an idea.
All at once {hero} knew what to do.
Then an idea came to {hero.him}.

@look
{hero} looked [everywhere|high and low|left and right|up and down|in every corner], but {hero.he} [found nothing|could not find it|saw nothing].
{hero} looked under [the table|the bed|every leaf|every stone] and behind [the door|the trees|the fence|the house], but it was not there.
First {hero} looked [in the kitchen|near the gate|by the well]. Then {hero.he} looked [under the stairs|behind the barn|along the path]. It was not there.

@thanks
"Thank you," said {hero}. "You are very kind."
"Thank you so much!" said {hero}.
"Thank you for helping me," {hero} said.
{hero} thanked {helper.him} [again and again|with all {hero.his} heart|many times].

@night
That night, {hero} [slept well|slept deeply|fell asleep with a smile|had sweet dreams|went to bed happy].
When the stars came out, {hero} was already [asleep|dreaming].
That evening, {hero} told the whole story [at dinner|by the fire|before bed].
The moon rose over the [roof|hill|trees], and {hero} fell asleep with a smile.

@lesson_share
{hero} learned that [joy grows when you share it|sharing makes everything better|good things are even better when they are shared].
From that day on, {hero} always shared what {hero.he} had.

@lesson_truth
{hero} learned that [the truth is always best|it is better to tell the truth|a brave word is better than a lie].
From that day on, {hero} always told the truth.

@lesson_try
{hero} learned that [you must never give up|big things begin with small steps|nobody can do everything on the first day|every mistake teaches you something].
"You see," {hero.he} thought, "I only had to [keep trying|try once more|be patient]."

@lesson_friend
{hero} learned that [a good friend is worth more than gold|friends make every day brighter|two friends can do what one cannot].
From that day on, they were the best of friends.
And they stayed friends for [ever|many years|the rest of their lives].

@lesson_kind
{hero} learned that [a kind deed always comes back|kindness is never lost|even a small kindness can change a day].
From that day on, {hero} was kind to everyone, big and small.

@end
The end.
And that was the end of a [long|good|wonderful|very special] day.
It was the best day of the [year|week|whole month].
And everyone was happy.
{hero} never forgot that day.
And they all lived happily ever after.
)TEXT";
// clang-format on

}  // namespace tera
