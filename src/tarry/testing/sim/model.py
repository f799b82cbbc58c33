"""placeholder"""


class Model: ...
