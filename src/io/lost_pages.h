// Files are read where they lie, as memory, and libraries share memory as files. A page that cannot be had, because its
// file became shorter, its disk fails or shared memory is full, ends the program by SIGBUS: without a word, if nobody
// gives one.
#pragma once

namespace tera {

/// From now on SIGBUS ends the program with one line that names the file and says what to do, and exit code 2. However
/// many threads come upon it at once, it is said once.
void explain_lost_pages();

}  // namespace tera
