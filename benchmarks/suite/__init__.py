"""Problems of many kinds on which the choice between methods is judged."""
