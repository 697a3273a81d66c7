"""What-if: definitions that are only proposed, judged by recorded traffic.

Where a message goes is decided by the broker's own `route`, never by a second reading of the definitions. It depends on
the destination, and on what the selectors on the way say of the message. So:

1. `conditions.py` walks the definitions for each destination of the window and notes which selectors may be asked;
2. Spark lets those selectors judge every recorded message and counts the messages by the answers: messages of one
   destination and with the same answers are a *class*, and all go the same way (`analytics/transforms/whatif.py`);
3. `predicted_routes.py` lets the broker route one message of each class, the answers given;
4. `message_counts.py` adds up, and `backlog_prediction.py` predicts what waits.

No pyspark here: only columns and counts are Spark's.
"""
