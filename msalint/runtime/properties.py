"""The properties of attention that `probe` tries, in the order it reports them."""

from __future__ import annotations

from msalint.runtime.beside_properties import marked_tokens_are_hidden, memory_lengths_are_kept, results_are_used
from msalint.runtime.gradient_properties import (
    backward_is_the_gradient,
    dtype_argument_is_kept,
    gradients_reach_whole_weights,
    weights_are_initialised,
    weights_are_registered,
)
from msalint.runtime.invariance_properties import (
    batch_order_does_not_matter,
    cached_parts_equal_the_whole,
    cached_steps_equal_the_whole,
    evaluation_is_deterministic,
    heads_are_apart,
    one_sample_is_enough,
    one_token_is_enough,
    permutation_carries_over,
    samples_are_apart,
    strides_do_not_matter,
)
from msalint.runtime.kernel_properties import kernel_arguments_agree
from msalint.runtime.mask_properties import (
    future_is_hidden,
    left_padding_is_hidden,
    masked_row_is_finite,
    right_padding_is_hidden,
)
from msalint.runtime.numeric_properties import (
    bfloat16_is_finite,
    dropout_acts_in_training,
    dropped_scores_get_no_weight,
    gradients_reach_every_parameter,
    half_is_finite,
    large_values_stay_finite,
    parameters_are_four_squares,
    scale_fits_the_heads,
    weights_sum_to_one,
)
from msalint.runtime.outcome import Property
from msalint.runtime.padding_ids import padding_ids_are_hidden
from msalint.runtime.pattern_properties import axes_are_in_order, groups_are_in_order, tokens_meet
from msalint.runtime.structure_properties import (
    device_is_followed,
    graph_is_let_go,
    heads_read_one_input,
    layers_are_apart,
    settings_stay,
)

PROPERTIES = (
    Property(
        "weights sum to 1", "sum of recorded weights over the axis that meets the values", weights_sum_to_one, False
    ),
    Property("right padding", "other content in padded tokens at the end", right_padding_is_hidden),
    Property("left padding", "other content in padded tokens at the beginning", left_padding_is_hidden),
    Property("padding ids", "the id of padding at the end, then a sample of nothing else", padding_ids_are_hidden),
    Property("marked tokens", "other content where ids beside the tokens mark padding", marked_tokens_are_hidden),
    Property("memory lengths", "other content behind the lengths of a second sequence", memory_lengths_are_kept),
    Property("fully masked row", "a sample whose keys are all hidden, forward and backward", masked_row_is_finite),
    Property("causality", "other content in one token at a time", future_is_hidden),
    Property("samples apart", "other content in the last sample", samples_are_apart),
    Property("batch order", "samples in another order", batch_order_does_not_matter),
    Property("results used", "a softmax or a masked copy that nothing reads", results_are_used, False),
    Property(
        "axes in order",
        "which token each element stands for, as in `msalint trace`",
        axes_are_in_order,
        False,
    ),
    Property("heads apart", "gradient of each head's context on the projections", heads_are_apart, False),
    Property("tokens meet", "other content in one token at a time", tokens_meet),
    Property("key heads in order", "which query heads have equal keys", groups_are_in_order, False),
    Property("permutation", "tokens in another order", permutation_carries_over),
    Property("deterministic eval", "two runs in eval, a training run between", evaluation_is_deterministic, False),
    Property("dropout in training", "two training runs with other seeds", dropout_acts_in_training, False),
    Property("dropped scores", "the weights of scores that dropout sets to zero", dropped_scores_get_no_weight, False),
    Property("scale", "the factor between q k^T and softmax, against 1 / sqrt(d_k)", scale_fits_the_heads, False),
    Property("float16", "the module and its input in half, with and without a mask", half_is_finite, False),
    Property("bfloat16", "the module and its input in bfloat16, with and without a mask", bfloat16_is_finite, False),
    Property("dtype argument", "another one of its class, built in bfloat16", dtype_argument_is_kept, False),
    Property("large values", "inputs up to 1e4 times as large, in float32", large_values_stay_finite, False),
    Property("kernel arguments", "mask, is_causal and lengths of the fused kernel", kernel_arguments_agree, False),
    Property("gradient flow", "gradient of the squared output on every weight", gradients_reach_every_parameter, False),
    Property("whole weights", "gradient off the diagonal of square weights", gradients_reach_whole_weights, False),
    Property("backward", "gradient of a hand-written backward, against differences", backward_is_the_gradient),
    Property("weights set", "built where memory that is not set is NaN", weights_are_initialised, False),
    Property(
        "weights registered", "what asks for a gradient, as built here and elsewhere", weights_are_registered, False
    ),
    Property("graph let go", "what the module keeps after a training run", graph_is_let_go, False),
    Property("settings stay", "plain attributes before and after runs in eval and training", settings_stay, False),
    Property("layers apart", "weights that layers of one list share", layers_are_apart, False),
    Property("heads side by side", "the inputs of a list of heads", heads_read_one_input),
    Property("device", "module and input on the meta device", device_is_followed, False),
    Property("parameter count", "against 4 d_model^2 and biases", parameters_are_four_squares, False),
    Property("cached decoding", "token by token with a cache, against the whole", cached_steps_equal_the_whole),
    Property("cached parts", "two tokens after a cache, against the whole", cached_parts_equal_the_whole),
    Property("strided input", "the same input, not contiguous", strides_do_not_matter),
    Property("batch of one", "the first sample alone", one_sample_is_enough),
    Property("length of one", "a sequence of one token", one_token_is_enough),
)
