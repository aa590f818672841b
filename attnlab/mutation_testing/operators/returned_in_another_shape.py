"""The output is a tuple, or has an axis too many or too few.

Right: `return self.out(h)`
Wrong: `return (self.out(h),)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

FORMS = ("({},)", "({})[0]", "({})[None]", "({}).mT", "({}).squeeze()", "({}).sum(0, keepdim=True)")


def edits(source: Source) -> Edits:
    for value in source.returned_values():
        yield from source.put_each(value, (form.format(source.text_of(value)) for form in FORMS))
