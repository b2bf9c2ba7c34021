// A command line as the parsers take it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace tera {

/// The words of a text, which are separated by white space.
inline std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> list;
    for (std::string word; in >> word;) list.push_back(word);
    return list;
}

}  // namespace tera
