"""Views, storages, versions and writes: reading and writing through lenses."""
