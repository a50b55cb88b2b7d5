"""Scripts that measure; a package so that what several of them share can be imported and tested."""
