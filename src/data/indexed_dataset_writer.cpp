#include "data/indexed_dataset_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::int64_t chunk = 1 << 16;  // elements handled at a time

/// Packs ids as T; returns the position of the first that does not fit, or ids.size().
template <class T>
std::size_t pack(std::span<const std::int32_t> ids, std::byte* out) {
    const auto fits = [](std::int32_t id) {
        const auto value = static_cast<T>(id);
        if constexpr (std::is_floating_point_v<T>) return static_cast<double>(value) == static_cast<double>(id);
        return static_cast<std::int64_t>(value) == id;
    };
    // Without a way out of the loop it is done many ids at a time.
    bool all_fit = true;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto value = static_cast<T>(ids[i]);
        all_fit &= fits(ids[i]);
        std::memcpy(out + i * sizeof(T), &value, sizeof(T));
    }
    if (all_fit) return ids.size();
    return static_cast<std::size_t>(std::find_if_not(ids.begin(), ids.end(), fits) - ids.begin());
}

std::size_t pack(TokenType type, std::span<const std::int32_t> ids, std::byte* out) {
    switch (type) {
        case TokenType::u8:
            return pack<std::uint8_t>(ids, out);
        case TokenType::i8:
            return pack<std::int8_t>(ids, out);
        case TokenType::i16:
            return pack<std::int16_t>(ids, out);
        case TokenType::i32:
            return pack<std::int32_t>(ids, out);
        case TokenType::i64:
            return pack<std::int64_t>(ids, out);
        case TokenType::f64:
            return pack<double>(ids, out);
        case TokenType::f32:
            return pack<float>(ids, out);
        case TokenType::u16:
            return pack<std::uint16_t>(ids, out);
    }
    return 0;
}

}  // namespace

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, TokenType type, bool multimodal)
    : prefix_(std::move(prefix)), type_(type) {
    bin_ = std::make_unique<BufferedOutput>(prefix_ + ".bin.tmp");
    idx_ = std::make_unique<BufferedOutput>(prefix_ + ".idx.tmp");
    document_index_ = std::make_unique<BufferedOutput>(prefix_ + ".documents.tmp");
    if (multimodal) modes_ = std::make_unique<BufferedOutput>(prefix_ + ".modes.tmp");
    // Zeros where the magic will be, so that not even the temporary file can be taken for an index.
    const std::vector<std::byte> header(static_cast<std::size_t>(SequenceIndex::header_size));
    idx_->write(header.data(), header.size());
    const std::int64_t first = 0;
    document_index_->write(&first, sizeof first);
}

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, TokenType type, const State& state)
    : prefix_(std::move(prefix)),
      type_(type),
      sequences_(state.sequences),
      documents_(state.documents),
      tokens_(state.tokens) {
    bin_ = std::make_unique<BufferedOutput>(prefix_ + ".bin.tmp", state.bin_bytes);
    idx_ = std::make_unique<BufferedOutput>(prefix_ + ".idx.tmp", state.idx_bytes);
    document_index_ = std::make_unique<BufferedOutput>(prefix_ + ".documents.tmp", state.document_bytes);
}

bool IndexedDatasetWriter::can_resume(const std::string& prefix, const State& state) {
    const auto reaches = [&](const char* suffix, std::int64_t size) {
        std::error_code error;
        const std::uintmax_t there = std::filesystem::file_size(prefix + suffix, error);
        return !error && size >= 0 && there >= static_cast<std::uintmax_t>(size);
    };
    return reaches(".bin.tmp", state.bin_bytes) && reaches(".idx.tmp", state.idx_bytes) &&
           reaches(".documents.tmp", state.document_bytes);
}

bool IndexedDatasetWriter::is_finished(const std::string& prefix, const State& state) {
    try {
        const IndexedDataset there(prefix);
        const SequenceIndex& index = there.index();
        return index.sequences() == state.sequences && index.documents() == state.documents &&
               index.tokens() == state.tokens && index.bin_size() == state.bin_bytes;
    } catch (const UsageError&) {
        return false;
    }
}

void IndexedDatasetWriter::keep_unfinished() {
    for (BufferedOutput* file : {bin_.get(), idx_.get(), document_index_.get(), modes_.get()})
        if (file != nullptr) file->keep_unfinished();
}

IndexedDatasetWriter::State IndexedDatasetWriter::checkpoint() {
    TERA_CHECK(bin_ != nullptr && open_sequences_ == 0 && modes_ == nullptr, prefix_);
    bin_->sync();
    idx_->sync();
    document_index_->sync();
    return {sequences_, documents_, tokens_, bin_->size(), idx_->size(), document_index_->size()};
}

void IndexedDatasetWriter::write_tokens(std::span<const std::int32_t> tokens) {
    const auto size = static_cast<std::size_t>(item_size(type_));
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
        const auto part = tokens.subspan(begin, std::min<std::size_t>(chunk, tokens.size() - begin));
        if (const std::size_t good = pack(type_, part, bin_->write_room(part.size() * size)); good < part.size())
            usage_error("cannot store token id ", part[good], " in ", prefix_, ".bin: it does not fit ",
                        type_name(type_), " (document ", documents_, ")");
    }
    tokens_ += static_cast<std::int64_t>(tokens.size());
}

void IndexedDatasetWriter::add_sequence(std::span<const std::int32_t> tokens, std::int8_t mode) {
    TERA_CHECK(bin_ != nullptr, prefix_, " is finished");
    if (tokens.size() > std::size_t{0x7FFFFFFF})
        usage_error(prefix_, ": document ", documents_, " has ", tokens.size(), " tokens; the format allows 2^31 - 1");
    write_tokens(tokens);
    const auto length = static_cast<std::int32_t>(tokens.size());
    idx_->write(&length, sizeof length);
    if (modes_) modes_->write(&mode, sizeof mode);
    ++sequences_;
    ++open_sequences_;
}

void IndexedDatasetWriter::end_document() {
    TERA_CHECK(bin_ != nullptr, prefix_, " is finished");
    document_index_->write(&sequences_, sizeof sequences_);
    ++documents_;
    open_sequences_ = 0;
}

void IndexedDatasetWriter::add_document(std::span<const std::int32_t> tokens,
                                        std::span<const std::int32_t> sequence_lengths) {
    TERA_CHECK(open_sequences_ == 0, "document not ended");
    std::size_t begin = 0;
    for (const std::int32_t length : sequence_lengths) {
        TERA_CHECK(length >= 0 && static_cast<std::size_t>(length) <= tokens.size() - begin, "sequence lengths");
        add_sequence(tokens.subspan(begin, static_cast<std::size_t>(length)));
        begin += static_cast<std::size_t>(length);
    }
    TERA_CHECK(begin == tokens.size(), "sequence lengths sum to ", begin, " of ", tokens.size(), " tokens");
    end_document();
}

void IndexedDatasetWriter::add_dataset(const std::string& prefix) {
    TERA_CHECK(bin_ != nullptr && open_sequences_ == 0, prefix_);
    const IndexedDataset other(prefix);
    const SequenceIndex& index = other.index();
    if (index.type() != type_ || index.token_size() != item_size(type_))
        usage_error("cannot merge ", prefix, " into ", prefix_, ": it holds ", type_name(index.type()), ", not ",
                    type_name(type_));
    if (index.sequences() > 0 && index.has_modes() != (modes_ != nullptr))
        usage_error("cannot merge ", prefix, " into ", prefix_, ": ", modes_ ? "it is not" : "it is", " multimodal");
    const MappedFile bytes(other.bin_path(), MappedFile::Access::sequential);
    const auto size = static_cast<std::size_t>(index.bin_size());
    if (bytes.size() < size) usage_error(other.bin_path(), ": has become shorter since it was opened");
    for (std::size_t at = 0; at < size; at += std::size_t{1} << 24)
        bin_->write(bytes.data() + at, std::min(std::size_t{1} << 24, size - at));
    idx_->write(index.lengths(), static_cast<std::size_t>(4 * index.sequences()));
    if (modes_ && index.has_modes()) modes_->write(index.modes(), static_cast<std::size_t>(index.sequences()));
    for (std::int64_t i = 1; i <= index.documents(); ++i) {
        const std::int64_t end = sequences_ + index.document_index(i);
        document_index_->write(&end, sizeof end);
    }
    sequences_ += index.sequences();
    documents_ += index.documents();
    tokens_ += index.tokens();
}

void IndexedDatasetWriter::write_offsets() {
    idx_->flush();
    const MappedFile written(idx_->path(), MappedFile::Access::sequential);
    const std::byte* const lengths = written.data() + SequenceIndex::header_size;
    std::int64_t position = 0;
    for (std::int64_t i = 0; i < sequences_; ++i) {
        idx_->write(&position, sizeof position);
        position += load_length(lengths, i) * item_size(type_);
    }
}

void IndexedDatasetWriter::append_to_index(BufferedOutput& part) {
    part.flush();
    const MappedFile written(part.path(), MappedFile::Access::sequential);
    idx_->write(written.data(), written.size());
}

void IndexedDatasetWriter::finish() {
    TERA_CHECK(bin_ != nullptr && open_sequences_ == 0, prefix_, ": finished before, or in the middle of a document");
    write_offsets();
    append_to_index(*document_index_);
    if (modes_) append_to_index(*modes_);
    std::byte header[SequenceIndex::header_size];
    const std::uint64_t version = 1, counts[2] = {static_cast<std::uint64_t>(sequences_),
                                                  static_cast<std::uint64_t>(documents_ + 1)};
    std::memcpy(header, "MMIDIDX\0\0", 9);
    std::memcpy(header + 9, &version, 8);
    header[17] = static_cast<std::byte>(type_);
    std::memcpy(header + 18, counts, 16);
    idx_->overwrite_front(header, sizeof header);
    publish();
}

void IndexedDatasetWriter::publish() {
    bin_->sync();
    idx_->sync();
    // An older .idx must never stand beside the new .bin.
    const std::string final_idx = prefix_ + ".idx";
    if (::unlink(final_idx.c_str()) == 0) {
        sync_folder(folder_of(prefix_));
    } else if (errno != ENOENT) {
        usage_error("cannot replace ", final_idx, ": ", std::strerror(errno));
    }
    bin_->rename_to(prefix_ + ".bin");
    idx_->rename_to(final_idx);
    bin_.reset();
    idx_.reset();
    document_index_.reset();
    modes_.reset();
}

}  // namespace tera
