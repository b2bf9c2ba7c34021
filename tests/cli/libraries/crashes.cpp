// A library that does not survive being loaded, as one built for other versions of what it needs may not.
#include <csignal>

[[gnu::constructor]] static void crash() { std::raise(SIGSEGV); }
