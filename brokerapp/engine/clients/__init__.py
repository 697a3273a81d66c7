"""Connected clients: their state, subscribe options and quotas."""
