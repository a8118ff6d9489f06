package telemetry

import (
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

// AddProcess adds what is known of every Go program: its version, its start, goroutines,
// memory and, on Linux, open files.
func (s *Set) AddProcess(version string) {
	s.GaugeFunc("roost_build_info", "1, with the version of roost and of Go as labels.",
		func() float64 { return 1 }, "version", version, "go", runtime.Version())
	started := float64(time.Now().UnixMilli()) / 1000
	s.GaugeFunc("roost_start_time_seconds", "When the server was started, in seconds since 1970.",
		func() float64 { return started })
	s.GaugeFunc("roost_goroutines", "Goroutines.",
		func() float64 { return runtimeSum("/sched/goroutines:goroutines") })
	s.GaugeFunc("roost_heap_bytes", "Bytes of objects on the heap, those that are not collected yet included.",
		func() float64 { return runtimeSum("/memory/classes/heap/objects:bytes") })
	s.GaugeFunc("roost_memory_bytes", "Bytes of memory that Go has from the system, without what it has given back.",
		func() float64 {
			return runtimeSum("/memory/classes/total:bytes") - runtimeSum("/memory/classes/heap/released:bytes")
		})
	if _, ok := openFiles(); ok {
		s.GaugeFunc("roost_open_files", "Open file descriptors; on Linux only.", func() float64 {
			n, _ := openFiles()
			return float64(n)
		})
	}
}

// runtimeSum reads one number of the runtime, without stopping the program.
func runtimeSum(name string) float64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64())
}

// openFiles counts the open file descriptors, where the system tells.
func openFiles() (n int, ok bool) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	return len(names) - 1, err == nil // without the one that reads
}
