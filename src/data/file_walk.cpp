#include "data/file_walk.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/error.h"

namespace tera {
namespace {

using FolderId = std::pair<dev_t, ino_t>;

std::string join(const std::string& folder, const std::string& name) {
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

class Walker {
  public:
    explicit Walker(bool follow_links) : follow_links_(follow_links) {}

    void enter(const std::string& folder) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0) usage_error("cannot read ", folder, ": ", std::strerror(errno));
        if (!S_ISDIR(info.st_mode)) usage_error(folder, ": is not a folder");
        const FolderId id{info.st_dev, info.st_ino};
        if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;
        above_.push_back(id);
        std::vector<std::string> folders;
        list(folder, folders);
        for (const std::string& inner : folders) enter(inner);
        above_.pop_back();
    }

    std::vector<std::string> files;

  private:
    void list(const std::string& folder, std::vector<std::string>& folders) {
        const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
        if (!open) usage_error("cannot read ", folder, ": ", std::strerror(errno));
        errno = 0;
        while (const dirent* entry = ::readdir(open.get())) {
            const std::string name = entry->d_name;
            if (name == "." || name == "..") continue;
            const std::string path = join(folder, name);
            struct stat here {
            }, target{};
            if (::lstat(path.c_str(), &here) != 0) continue;  // removed since it was listed
            const bool is_link = S_ISLNK(here.st_mode);
            const bool is_folder = ::stat(path.c_str(), &target) == 0 && S_ISDIR(target.st_mode);
            if (!is_folder)
                files.push_back(path);
            else if (!is_link || follow_links_)
                folders.push_back(path);
            errno = 0;
        }
        if (errno != 0) usage_error("cannot read ", folder, ": ", std::strerror(errno));
    }

    bool follow_links_;
    std::vector<FolderId> above_;  // folders being listed, outermost first
};

/// The paths that match a pattern whose first part, up to the byte `at`, has been turned into `folder` (empty, or with
/// a slash at its end).
void add_matches(const std::string& pattern, std::size_t at, const std::string& folder, std::vector<std::string>& out) {
    const std::size_t slash = std::min(pattern.find('/', at), pattern.size());
    const std::string part = pattern.substr(at, slash - at);
    const auto go_on = [&](const std::string& path) {
        if (slash == pattern.size())
            out.push_back(path);
        else
            add_matches(pattern, slash + 1, path + "/", out);
    };
    const auto is_no_match = [] { return errno == ENOENT || errno == ENOTDIR; };
    if (part.find_first_of("*?[\\") == std::string::npos) {
        struct stat info {};
        const std::string path = folder + part;
        if (path.empty() || ::lstat(path.c_str(), &info) == 0) return go_on(path);
        if (!is_no_match()) usage_error("cannot read ", path, ": ", std::strerror(errno));
        return;
    }
    const std::string place = folder.empty() ? "." : folder;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(place.c_str()), &::closedir);
    if (!open && is_no_match()) return;
    if (!open) usage_error("cannot read ", place, ": ", std::strerror(errno));
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(open.get())) names.emplace_back(entry->d_name);
    if (errno != 0) usage_error("cannot read ", place, ": ", std::strerror(errno));
    for (const std::string& name : names)
        if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) go_on(folder + name);
}

}  // namespace

std::vector<std::string> matching_paths(const std::string& pattern) {
    std::vector<std::string> paths;
    add_matches(pattern, 0, "", paths);
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::string expand_home(const std::string& path) {
    const char* home = std::getenv("HOME");
    if (home == nullptr || !(path == "~" || path.starts_with("~/"))) return path;
    return home + path.substr(1);
}

std::string path_inside(const std::string& path, const std::string& folder) {
    const std::string above = expand_home(folder);
    TERA_CHECK(path.starts_with(above), path, " is not below ", above);
    const std::size_t begin = path.find_first_not_of('/', above.size());
    return begin == std::string::npos ? "" : path.substr(begin);
}

std::string base_name(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return std::string(path.substr(path.rfind('/') + 1));
}

void require_no_blank(const std::string& prefix) {
    if (prefix.find_first_of(" \t\r\n\f\v") != std::string::npos)
        usage_error("'", prefix, "' holds a blank, which a list of prefixes cannot; rename it");
}

std::vector<std::string> walk_files(const std::string& folder, bool follow_links) {
    Walker walker(follow_links);
    walker.enter(expand_home(folder));
    return std::move(walker.files);
}

std::vector<std::string> walk_prefixes(const std::string& folder, bool follow_links) {
    std::vector<std::string> prefixes;
    for (const std::string& file : walk_files(folder, follow_links)) {
        if (!file.ends_with(".bin") || file.ends_with("/.bin")) continue;
        const std::string prefix = file.substr(0, file.size() - 4);
        struct stat info {};
        if (::stat((prefix + ".idx").c_str(), &info) != 0)
            usage_error(file, ": there is no ", prefix, ".idx; the pair is unfinished: write it again or remove it");
        prefixes.push_back(prefix);
    }
    return prefixes;
}

}  // namespace tera
