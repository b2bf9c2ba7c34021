// The flag list: tokenizer and data.
#include "config/fields.h"

namespace tera {
namespace {

const char* const word_order_data =
    "BERT and T5 datasets are not built yet; `teratron plan bert|t5` counts the models already";

void add_tokenizer_fields(FieldList& list) {
    using C = RunConfig;
    list.group("tokenizer", ResumeRule::training);
    list.add("tokenizer-type", &C::tokenizer_type, "default GPT2BPETokenizer, for BERT and T5 BertWordPieceLowerCase")
        .one_of({"BertWordPieceLowerCase", "BertWordPieceCase", "GPT2BPETokenizer", "SentencePieceTokenizer",
                 "GPTSentencePieceTokenizer", "HuggingFaceTokenizer", "Llama2Tokenizer", "TikTokenizer",
                 "MultimodalTokenizer", "NullTokenizer", "NullMultimodalTokenizer", "SFTTokenizer"})
        .later_for({"MultimodalTokenizer", "NullMultimodalTokenizer", "SFTTokenizer"},
                   "data tokenised elsewhere trains with NullTokenizer and --vocab-size");
    list.add("vocab-file", &C::vocab_file, "vocabulary (GPT-2: JSON, BERT: one token per line)");
    list.add("merge-file", &C::merge_file, "BPE merges");
    list.add("vocab-size", &C::vocab_size,
             "size of the vocabulary before padding (NullTokenizer: without its end-of-document token)");
    list.add("vocab-extra-ids", &C::vocab_extra_ids, "T5: sentinel tokens added to the vocabulary").prints("0");
    list.add("tokenizer-model", &C::tokenizer_model, "tokenizer file or folder");
    list.add("tiktoken-pattern", &C::tiktoken_pattern, "which pre-tokenisation pattern: v1 or v2");
    list.add("tiktoken-num-special-tokens", &C::tiktoken_num_special_tokens,
             "special tokens in front of the vocabulary");
    list.add("tiktoken-special-tokens", &C::tiktoken_special_tokens, "names of the first of these")
        .values(ArgCount::one_or_more());
}

void add_source_fields(FieldList& list) {
    using C = RunConfig;
    list.group("data", ResumeRule::data);
    list.add("data-path", &C::data_path, "one prefix, several, or WEIGHT PREFIX pairs");
    list.add("split", &C::split, "train,valid,test shares of the documents; default 969, 30, 1");
    list.add("train-data-path", &C::train_data_path, "data of the training split alone");
    list.add("valid-data-path", &C::valid_data_path, "data of the validation split alone");
    list.add("test-data-path", &C::test_data_path, "data of the test split alone");
    list.add("data-args-path", &C::data_args_path, "file whose words are taken as --data-path");
    list.add("per-split-data-args-path", &C::per_split_data_args_path,
             "JSON file with a list for each of train, valid, test");
    list.add("data-cache-path", &C::data_cache_path, "folder for index maps in Megatron's format; none is needed")
        .on_resume(ResumeRule::free);
    list.add("mock-data", &C::mock_data, "synthetic samples, no files");
    list.add("seq-length", &C::seq_length, "tokens per sample");
    list.add("encoder-seq-length", &C::encoder_seq_length,
             "T5: encoder length; otherwise another name of --seq-length");
    list.add("decoder-seq-length", &C::decoder_seq_length, "T5: decoder length");
    list.add("reset-position-ids", &C::reset_position_ids, "positions start at 0 again after an end of document")
        .on_resume(ResumeRule::training);
    list.add("reset-attention-mask", &C::reset_attention_mask, "no attention from one document to another")
        .on_resume(ResumeRule::training);
    list.add("eod-mask-loss", &C::eod_mask_loss, "no loss where the input is an end of document")
        .on_resume(ResumeRule::training);
    list.add("dataloader-type", &C::dataloader_type,
             "single: one pass in index order; cyclic: shuffled epochs, each data-parallel rank's part on its own, so "
             "that the order depends on how many there are; default single")
        .one_of({"single", "cyclic", "external"})
        .later_for({"external"}, "an outside data loader cannot be plugged in; use single or cyclic");
    list.add("no-data-sharding", &C::data_sharding,
             "cyclic: shuffle the data as a whole; the order does not depend on the ranks")
        .off()
        .as("data_sharding");
    list.add("num-workers", &C::num_workers, "threads that prepare batches").on_resume(ResumeRule::free);
    list.add("num-dataset-builder-threads", &C::num_dataset_builder_threads, "threads that build index maps")
        .on_resume(ResumeRule::free);
    const std::string goldfish = "the goldfish loss is not built; leave it out";
    list.add("goldfish-loss", &C::goldfish_loss, "drop hashed tokens from the loss").later(goldfish).not_from_core();
    list.add("goldfish-k", &C::goldfish_k, "one token in k is dropped").later(goldfish).not_from_core();
    list.add("goldfish-h", &C::goldfish_h, "tokens of context in the hash").later(goldfish).not_from_core();
    list.add("mask-prob", &C::mask_prob, "BERT and T5: share of tokens masked").later(word_order_data);
    list.add("short-seq-prob", &C::short_seq_prob, "BERT: share of short samples").later(word_order_data);
    list.add("no-mmap-bin-files", &C::mmap_bin_files, "read token files instead of mapping them")
        .off()
        .as("mmap_bin_files")
        .no_effect("token files are mapped read-only; the bytes are the same")
        .on_resume(ResumeRule::free);
    list.add("no-create-attention-mask-in-dataloader", &C::create_attention_mask_in_dataloader,
             "no mask tensor in the batch")
        .off()
        .as("create_attention_mask_in_dataloader")
        .no_effect("attention works from document boundaries; a mask tensor is never made")
        .on_resume(ResumeRule::free);
}

void add_other_data_fields(FieldList& list) {
    list.unbound(FlagStatus::inert, "token files are always read through one memory map",
                 {{"data-impl", "s{lazy|cached|mmap|infer}=infer"},
                  {"dataset-impl", "s{lazy|cached|mmap|infer}=infer"},
                  {"mmap-warmup", "T"},
                  {"dataloader-defer-npy-index-mmap", "T"},
                  {"dataloader-fast-cache-load", "T"},
                  {"mid-level-dataset-surplus", "f=0.005"},
                  {"per-dataset-sequences-path", "s"}},
                 false);
    list.unbound(FlagStatus::inert, "the sampling rate is read by no part of GPT training", {{"sample-rate", "f=1.0"}});
    list.unbound(FlagStatus::refused, "data is read from local and mounted file systems only",
                 {{"s3-cache-path", "s"}});
    list.unbound(FlagStatus::inert, "data is read from local and mounted file systems only", {{"disable-msc", "T"}},
                 false);
    list.unbound(FlagStatus::refused, "data is read from local and mounted file systems only",
                 {{"object-storage-cache-path", "?"}, {"enable-msc", "?"}}, false);
    list.unbound(FlagStatus::refused, "use --reset-attention-mask --reset-position-ids for document isolation",
                 {{"dataloader-inter-document-masking", "?"}}, false);
    list.unbound(FlagStatus::refused, "fill-in-the-middle data is not built",
                 {{"fim-data", "?"},
                  {"fim-eod-token", "?"},
                  {"fim-fragment-rate", "?"},
                  {"fim-middle-token", "?"},
                  {"fim-no-prefix", "?"},
                  {"fim-pad-token", "?"},
                  {"fim-prefix-token", "?"},
                  {"fim-rate", "?"},
                  {"fim-split-sample", "?"},
                  {"fim-spm-rate", "?"},
                  {"fim-suffix-token", "?"}},
                 false);
    list.unbound(FlagStatus::refused, "fine-tuning on conversations is not built",
                 {{"sft", "?"}, {"sft-tokenizer-prompt-format", "?"}, {"allow-ambiguous-pad-tokens", "?"}}, false);
    list.unbound(FlagStatus::refused,
                 "changing data at given iterations is not built; stop, change --data-path and resume",
                 {{"phase-transition-iterations", "?"}}, false);
}

}  // namespace

void add_data_fields(FieldList& list) {
    add_tokenizer_fields(list);
    add_source_fields(list);
    add_other_data_fields(list);
}

}  // namespace tera
