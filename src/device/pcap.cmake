list(APPEND device_libs PkgConfig::LIBPCAP)
