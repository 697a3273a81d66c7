"""Check an installation, running or stopped: ports, disk, store, system, certificates, versions. Changes nothing."""
