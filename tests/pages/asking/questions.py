"""Questions that several tests ask."""

from core.inference.questions import Question, Statistic

SHARE = Question(statistic=Statistic.SHARE, column="readmitted", value="yes")
GAP = Question(statistic=Statistic.DIFFERENCE, column="age", by=("sex",), groups=("female", "male"))
