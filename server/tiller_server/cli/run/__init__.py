"""Parts of `tiller run`: prompt input, session selection and final answer."""
