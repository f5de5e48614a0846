netchannel_benchmark(driver SOURCES bench_driver.cpp USES driver)
