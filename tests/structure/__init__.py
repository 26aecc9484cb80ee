"""The shape of the project itself: layers, files, public names, documents."""
