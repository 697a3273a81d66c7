"""Predict what proposed definitions would do with recorded traffic (what-if analyses).

Messages are routed by the broker's own `route`, not by a second interpretation of the definitions. A route depends on
the destination, and on the results of the selectors on the way. So:

1. `conditions.py` walks through the definitions for each destination of the window and notes which selectors may be
   evaluated;
2. Spark evaluates those selectors on every recorded message and counts the messages by the answers: messages of one
   destination with the same answers are a *class*, and have the same route (`analytics/transforms/whatif.py`);
3. `predicted_routes.py` has the broker route one message of each class, with the given answers;
4. `message_counts.py` counts, and `backlog_prediction.py` predicts backlogs.

This package does not import pyspark.
"""
