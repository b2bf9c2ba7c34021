// Finding the files of a data set in folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// What matches a pattern of * ? [...] as in a shell, sorted by name. UsageError if a folder that could hold a match
/// cannot be read, which glob() passes over.
std::vector<std::string> matching_paths(const std::string& pattern);

/// The files under a folder in the order of Python's os.walk: those of the folder as the system lists them, then its
/// sub-folders likewise. Paths begin with `folder` as it was given ("~" stands for the home folder). Links to folders
/// are entered if follow_links; one that leads back to where it came from is not. UsageError if a folder cannot be
/// read.
std::vector<std::string> walk_files(const std::string& folder, bool follow_links);

/// The prefixes of the .bin/.idx pairs under a folder, in that order. UsageError if a .bin has no .idx.
std::vector<std::string> walk_prefixes(const std::string& folder, bool follow_links);

/// A leading "~" replaced by $HOME.
std::string expand_home(const std::string& path);

/// The rest of a path that walk_files(folder) gave, below the folder.
std::string path_inside(const std::string& path, const std::string& folder);

/// The last part of a path, whatever slashes end it.
std::string base_name(std::string_view path);

/// Lists of prefixes are words between blanks, so a prefix with a blank cannot be in one. UsageError for such.
void require_no_blank(const std::string& prefix);

}  // namespace tera
