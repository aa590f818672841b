"""The names that people give to arguments, and what they mean by them."""

from __future__ import annotations

from attnlab.catalogue.literals import Scalar, Symbol

# Constructor arguments by the size they mean.
_DIMENSIONS = {
    "D": "embed_dim d_model dim hidden_size n_embd embed_size model_dim embedding_dim emb_dim "
    "emb_size n_embed width hidden embed_dims model_size d_in d_out dim_model",
    "H": "num_heads n_heads heads nhead n_head h num_attention_heads head_count nheads",
    "Hkv": "num_kv_heads n_kv_heads num_key_value_heads kv_heads n_kv_head n_kv",
    "M": "max_seq_len max_len max_length block_size seq_len max_position_embeddings "
    "max_seq_length seq_length context_length n_positions max_positions ctx_len",
    "V": "vocab_size num_embeddings n_vocab",
    "hd": "head_dim d_k d_head d_v dim_head head_size",
    "F": "d_ff hidden_dim ffn_dim intermediate_size mlp_dim dim_feedforward ff_dim d_hidden",
}
DIMENSIONS = {name: symbol for symbol, names in _DIMENSIONS.items() for name in names.split()}
DIMENSIONS |= {symbol: symbol for symbol in ("B", "S", "T", "L", *_DIMENSIONS)}
DIMENSIONS |= {"C": "D", "E": "D"}
PICTURE_SIZES = (
    *("img_size", "image_size", "resolution", "img_dim", "image_dim", "img", "image", "img_res"),
    *("input_resolution", "image_resolution", "img_sz", "input_size"),
)
# Constructor arguments whose value hardly matters to a trace.
LITERALS: dict[str, Scalar] = {
    **dict.fromkeys(("dropout", "p", "dropout_p", "dropout_rate", "attn_dropout", "drop"), 0.0),
    **dict.fromkeys(("num_layers", "n_layers", "n_layer", "depth"), 2),
    **dict.fromkeys(("bias", "qkv_bias"), True),
    "eps": 1e-5,
    "base": 10000.0,
    **dict.fromkeys(PICTURE_SIZES[:-1], 32),  # input_size may be a width
    **dict.fromkeys(("patch_size", "patch"), 8),
    **dict.fromkeys(("in_channels", "in_chans", "channels", "num_channels"), 3),
    **dict.fromkeys(("num_classes", "n_classes", "num_labels"), 10),
}
CHANNELS = ("in_channels", "in_chans", "channels", "num_channels")
_FEEDS = {
    "B S D": "x hidden_states inputs input src tgt query q key k value v queries keys values "
    "hidden embeddings memory context encoder_hidden_states",
    "B S int": "input_ids ids tokens token_ids idx positions position_ids",
    "D D": "wq wk wv wo w_q w_k w_v w_o",
    "B S int segments": "document documents document_ids segment segments segment_ids",
    "B S S bool forbids": "mask attn_mask attention_mask src_mask causal_mask",
    "B S bool forbids": "key_padding_mask padding_mask pad_mask",
    "B S bool allows": "keep visible valid valid_mask attend",
}
FEEDS = {name: said for said, names in _FEEDS.items() for name in names.split()}
MASKS = ("mask", "keep", "visible", "valid", "attend")  # in names of masks
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


def names_mask(argument: str) -> bool:
    """Whether an argument of this name is a mask over keys."""
    return any(word in argument.lower() for word in MASKS)


def usual_feed(argument: str, annotation: str) -> str:
    """The axes that an argument of forward has by its name, or by its annotation; "" unknown."""
    if argument in FEEDS:
        return FEEDS[argument]
    kinds = {"LongTensor": "B S int", "IntTensor": "B S int", "BoolTensor": "B S bool"}
    return next((axes for kind, axes in kinds.items() if kind in annotation), "")
