"""A worked purchase in WebShop's own texts, for prompts that show one. Its products are in no catalogue."""

from trca_jax.envs.base import Example

EXAMPLE = Example(
    "Find me water resistant hiking backpacks with color: green, and price lower than 50.00 dollars",
    (
        (
            "'Search'",
            "I look for a water resistant hiking backpack. Color and price are checked on the pages of the products.",
            "search[water resistant hiking backpack green]",
        ),
        (
            "'Back to Search' [SEP] 'Page 1 (Total results: 2)' [SEP] 'Next >' [SEP] 'B0EXAMPL01' [SEP] "
            "'Trailmark Hiking Backpack, Laptop Sleeve' [SEP] '$64.5' [SEP] 'B0EXAMPL02' [SEP] "
            "'Fellrun Hiking Backpack, Water Resistant' [SEP] '$38.99'",
            "The first one costs more than 50 dollars. The second one is water resistant, and cheap enough.",
            "click[b0exampl02]",
        ),
        (
            "'Back to Search' [SEP] '< Prev' [SEP] 'color' [SEP] 'black' [SEP] 'green' [SEP] "
            "'Fellrun Hiking Backpack, Water Resistant' [SEP] 'Price: $38.99' [SEP] 'Rating: N.A.' [SEP] "
            "'Description' [SEP] 'Features' [SEP] 'Reviews' [SEP] 'Buy Now'",
            "It comes in green, which I must choose before I buy.",
            "click[green]",
        ),
        (
            "'Back to Search' [SEP] '< Prev' [SEP] 'color' [SEP] 'black' [SEP] 'green' [SEP] "
            "'Fellrun Hiking Backpack, Water Resistant' [SEP] 'Price: $38.99' [SEP] 'Rating: N.A.' [SEP] "
            "'Description' [SEP] 'Features' [SEP] 'Reviews' [SEP] 'Buy Now'",
            "Product, color and price are as asked for.",
            "click[buy now]",
        ),
    ),
)
