// Writes a PREFIX.bin/.idx pair in constant memory. Nothing appears under the final names before finish(), and the .idx
// last of all: what has an .idx is complete. A writer destroyed before finish() leaves nothing behind, unless it was
// told to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/buffered_output.h"
#include "data/indexed_dataset.h"

namespace tera {

class IndexedDatasetWriter {
  public:
    /// How far a dataset has come between two documents, with the sizes of its temporary files.
    struct State {
        std::int64_t sequences = 0, documents = 0, tokens = 0;
        std::int64_t bin_bytes = 0, idx_bytes = 0, document_bytes = 0;
    };

    /// Writes PREFIX.bin.tmp, PREFIX.idx.tmp and PREFIX.documents.tmp until finish(), and PREFIX.modes.tmp if each
    /// sequence carries a mode. UsageError if they cannot be created or another process is writing them.
    IndexedDatasetWriter(std::string prefix, TokenType type, bool multimodal = false);

    /// Goes on with the temporary files that a killed program left, from a state that it had stored.
    IndexedDatasetWriter(std::string prefix, TokenType type, const State& state);
    /// True if the temporary files are there and reach as far as the state.
    static bool can_resume(const std::string& prefix, const State& state);
    /// Syncs the temporary files; what is stored afterwards about this state will be true. Only between documents, and
    /// not for multimodal data.
    State checkpoint();
    /// True if the dataset is there under its final names and is what finish() made of that state.
    static bool is_finished(const std::string& prefix, const State& state);
    /// The temporary files stay when this is destroyed, for a later writer to go on with.
    void keep_unfinished();

    /// One sequence of the current document. UsageError if an id does not fit the element type. The mode is stored in
    /// multimodal files only.
    void add_sequence(std::span<const std::int32_t> tokens, std::int8_t mode = 0);
    void end_document();
    /// A whole document: its tokens, cut into sequences of the given lengths (none for an empty document).
    void add_document(std::span<const std::int32_t> tokens, std::span<const std::int32_t> sequence_lengths);
    /// Appends another finished dataset of the same element type, multimodal or not as this one, documents and all.
    /// Only between documents.
    void add_dataset(const std::string& prefix);
    /// Completes the files, syncs them and gives them their names.
    void finish();

    const std::string& prefix() const { return prefix_; }
    std::int64_t sequences() const { return sequences_; }
    std::int64_t documents() const { return documents_; }
    std::int64_t tokens() const { return tokens_; }

  private:
    void write_tokens(std::span<const std::int32_t> tokens);
    void write_offsets();
    void append_to_index(BufferedOutput& part);
    void publish();

    std::string prefix_;
    TokenType type_;
    std::unique_ptr<BufferedOutput> bin_, idx_, document_index_;
    std::unique_ptr<BufferedOutput> modes_;  // null unless multimodal
    std::int64_t sequences_ = 0, documents_ = 0, tokens_ = 0;
    std::int64_t open_sequences_ = 0;  // of the document not yet ended
};

}  // namespace tera
