"""The names that people give to arguments, and what they mean by them."""

from __future__ import annotations

import re
from ast import literal_eval

from attnlab.catalogue.literals import Scalar, Symbol

# Constructor arguments by the size they mean.
_DIMENSIONS = {
    "D": "embed_dim d_model dim hidden_size n_embd embed_size model_dim embedding_dim emb_dim "
    "emb_size n_embed width hidden embed_dims model_size d_in d_out dim_model dmodel d_embed "
    "embd_dim emsize",
    "H": "num_heads n_heads heads nhead n_head h num_attention_heads head_count nheads num_head "
    "attn_heads num_q_heads n_q_heads num_query_heads",
    "Hkv": "num_kv_heads n_kv_heads num_key_value_heads kv_heads n_kv_head n_kv num_kv_groups "
    "n_kv_groups n_query_groups num_query_groups",
    "M": "max_seq_len max_len max_length block_size seq_len max_position_embeddings "
    "max_seq_length seq_length context_length n_positions max_positions ctx_len n_ctx context_len "
    "context_size max_context maxlen max_sequence_length",
    "V": "vocab_size num_embeddings n_vocab vocab_sz",
    "hd": "head_dim d_k d_head d_v dim_head head_size d_kv dim_per_head head_width",
    "F": "d_ff hidden_dim ffn_dim intermediate_size mlp_dim dim_feedforward ff_dim d_hidden d_ffn "
    "d_mlp ffn_hidden ffn_hidden_dim mlp_hidden_dim ffn_hidden_size feedforward_dim dim_ff",
}
DIMENSIONS = {name: symbol for symbol, names in _DIMENSIONS.items() for name in names.split()}
DIMENSIONS |= {symbol: symbol for symbol in ("B", "S", "T", "L", *_DIMENSIONS)}
DIMENSIONS |= {"C": "D", "E": "D"}
PICTURE_SIZES = (
    *("img_size", "image_size", "resolution", "img_dim", "image_dim", "img", "image", "img_res"),
    *("input_resolution", "image_resolution", "img_sz", "res", "input_size"),
)
# Constructor arguments by a value that suits them. Windows and clipped distances are shorter than
# the usual sequence, so that something is hidden.
_VALUES = {
    "D": "d_hid n_state n_hidden nhid ninp embed emb d in_dim out_dim dim_in dim_out in_features "
    "out_features feature_dim feat_dim features n_features hidden_channels input_dim "
    "output_dim attention_dim attn_dim n_mels num_mels mel_bins n_feats num_feats feat_size "
    "query_dim q_dim qdim context_dim cross_dim kv_dim kdim vdim cross_attention_dim "
    "encoder_dim decoder_dim memory_dim enc_dim dec_dim src_dim tgt_dim",
    "hd": "d_qk d_key d_value dim_key dim_value head_dims head_channels rotary_dim rope_dim",
    "F": "d_inner inner hidden_features inner_dim mlp_hidden ff_size mlp_size ffn_size",
    "M": "max_pos max_seq context ctx num_positions seqlen context_window max_tokens "
    "sequence_length",
    "V": "vocab num_tokens n_tokens ntoken src_vocab tgt_vocab src_vocab_size tgt_vocab_size "
    "num_items n_items item_num num_users n_users num_entities n_entities n_chars n_symbols",
    "0.0": "p",
    "1.0": "temperature temp tau",
    "1e-5": "eps norm_eps rms_norm_eps layer_norm_eps epsilon",
    "10000.0": "base theta rope_theta rope_base rotary_base",
    "30.0": "softcap soft_cap logit_cap logit_softcap attn_softcap",
    "0": "layer_idx layer_id layer_index layer_num pad_idx pad_id padding_idx pad_token_id pad",
    "1": "bos_id bos_token_id sos_id bos eos_id eos_token_id eos num_registers n_registers",
    "2": "num_layers n_layers n_layer depth num_hidden_layers num_blocks n_blocks layers nlayers "
    "nlayer num_encoder_layers num_decoder_layers top_k topk k num_experts_per_tok "
    "experts_per_token n_rep num_groups n_groups groups num_segments type_vocab_size n_hashes",
    "3": "window band lookback window_size attn_window attention_window local_window "
    "sliding_window span kernel_size kernel max_rel max_relative_position max_relative "
    "max_rel_pos clip_distance in_channels in_chans channels num_channels in_ch",
    "4": "num_experts n_experts experts expansion mlp_ratio ff_mult ffn_mult mult expand "
    "expansion_factor ff_ratio ffn_ratio mlp_mult rank lora_rank kv_lora_rank q_lora_rank kv_rank "
    "latent_dim d_c num_latents n_latents num_slots num_queries mem_len num_sinks n_sinks",
    "5": "chunk_size chunk segment_len segment_length",
    "8": "num_buckets n_buckets relative_attention_num_buckets buckets patch_size patch lora_alpha",
    "10": "num_classes n_classes num_labels n_labels n_class classes num_speakers n_speakers "
    "speakers num_targets n_targets num_tags n_tags",
    "16": "max_distance relative_attention_max_distance max_dist",
    "32": " ".join(PICTURE_SIZES[:-1]),  # input_size may be a width
    "True": "bias qkv_bias causal is_causal",
    "'gelu'": "activation act hidden_act act_fn",
}
LITERALS: dict[str, Scalar] = {
    name: Symbol(value) if value.isalpha() and value != "True" else literal_eval(value)
    for value, names in _VALUES.items()
    for name in names.split()
}
OF_KIND = {"int": 4, "float": 0.5, "bool": True}  # where nothing but its annotation is known
SPECIAL_TOKENS = re.compile(r"(^|_)(pad|padding|bos|sos|eos)(_token)?_(idx|id|index)$")
# Names of sizes and of counts that are none of the usual ones.
SIZED = re.compile(
    r"(^|_)(dims?|sizes?|width|features|channels|units|hidden|in|out)$|^(n|num|d|dim|size|len)_"
)
COUNTED = re.compile(r"(n|num)_")
CHANNELS = ("in_channels", "in_chans", "channels", "num_channels")
_FEEDS = {
    "B S D": "x hidden_states inputs input src tgt query q key k value v queries keys values "
    "hidden embeddings memory context encoder_hidden_states mels mel spec spectrogram feats frames "
    "pos query_pos pos_embed pos_emb position_embedding",
    "B 3 32 32": "img image images imgs pixel_values",
    "B S int": "input_ids ids tokens token_ids idx positions position_ids",
    "D D": "wq wk wv wo w_q w_k w_v w_o",
    "B S int segments": "document documents document_ids segment segments segment_ids doc docs "
    "doc_id doc_ids seq_id seq_ids sequence_ids",
    "B int lengths": "lengths lens seq_lens seq_lengths src_lengths src_lens tgt_lengths x_lengths "
    "input_lengths valid_lens valid_lengths prefix_len prefix_lens prefix_lengths mel_lengths",
    "B int": "t timestep timesteps class_labels class_ids class_idx",
    "B S S bool forbids": "mask attn_mask attention_mask src_mask causal_mask",
    "B S bool forbids": "key_padding_mask padding_mask pad_mask",
    "B S S bool allows": "adj adjacency adj_matrix adj_mat",
    "B S bool allows": "keep visible valid valid_mask attend node_mask",
}
FEEDS = {name: said for said, names in _FEEDS.items() for name in names.split()}
MASKS = ("mask", "keep", "visible", "valid", "attend")  # in names of masks
TIMES = {"t", "ts", "timestep", "timesteps", "time", "noise_level", "sigma"}  # of a diffusion model
# Arguments of forward that are no tensors, by what they may be.
ARGUMENTS: dict[str, Scalar] = {
    **dict.fromkeys(("seq_len", "length", "seq_length", "T", "n"), Symbol("S")),
    **dict.fromkeys(("offset", "start_pos", "past_length", "step", "layer_idx"), 0),
    **dict.fromkeys(("causal", "is_causal", "training"), False),
    "batch_size": Symbol("B"),
}
# Arguments of forward that take what the call before returned.
_CACHES = "cache kv_cache past past_kv past_key_value past_key_values state caches kv_caches"
CACHES = tuple(_CACHES.split())
PLAIN = {"int": 3, "bool": True, "float": 0.5, "str": "text"}


def usual_value(argument: str, annotation: str = "") -> Scalar | None:
    """A value for a constructor's argument of no name in `LITERALS`; None where none is known."""
    if re.search(r"drop(out|path)?(_|$)|pdrop", argument):
        return 0.0
    if re.match(r"(use|is|with|has)_", argument) and annotation in ("", "bool"):
        return True
    if annotation in ("", "int") and (token := SPECIAL_TOKENS.search(argument)):
        return int(token[2] not in ("pad", "padding"))
    return OF_KIND.get(annotation)


def size_by_name(argument: str, annotation: str = "") -> int | None:
    """A value for an argument that is a size or a count by its name, such as `obs_dim`; None for
    others."""
    if annotation not in ("", "int") or not SIZED.search(argument):
        return None
    return 4 if COUNTED.match(argument) else 12


def names_mask(argument: str) -> bool:
    """Whether an argument of this name is a mask over keys."""
    return any(word in argument.lower() for word in MASKS)


def names_part(argument: str, class_name: str) -> bool:
    """Whether an argument of a constructor is, by its name, a module of that class: `layer` or
    `encoder_layer` an `EncoderLayer`."""
    word = argument.replace("_", "").lower()
    return len(word) > len("net") and class_name.lower().endswith(word)


def names_class(argument: str) -> bool:
    """Whether an argument of this name may be the class that a sample is of."""
    return bool(re.fullmatch(r"y|c|cls|cond|(class_?)?(labels?|ids?|idx)|classes", argument))


def usual_feed(argument: str, annotation: str) -> str:
    """The axes that an argument of forward has by its name, or by its annotation; "" unknown."""
    if argument in FEEDS:
        return FEEDS[argument]
    kinds = {"LongTensor": "B S int", "IntTensor": "B S int", "BoolTensor": "B S bool"}
    return next((axes for kind, axes in kinds.items() if kind in annotation), "")
