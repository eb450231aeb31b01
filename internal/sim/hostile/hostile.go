// Package hostile helps to test parsers. It generates texts that make careless parsers slow, and checks that a parser's
// time grows only in proportion to the length of the text.
package hostile

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All returns all texts of Markdown and Printed.
func All(size int) map[string]string {
	all := Markdown(size)
	for name, text := range Printed(size) {
		all["printed "+name] = text
	}
	return all
}

// Parameters of Linear. If a text becomes `factor` times as long, a linear parser takes factor times as long, and a
// quadratic parser factor² times.
const (
	small  = 40 << 10
	factor = 4
	most   = 2 * factor
	// Linear compares the shortest times of several tries, because noise only adds time. It accepts a parser after
	// fewTries at the earliest, so that a single slow run of the short text does not hide a quadratic parser. It rejects
	// a parser only after manyTries.
	fewTries, manyTries = 3, 10
	// Linear accepts every parser that handles the long text in less than fastEnough. Even a quadratic parser of this
	// speed parses a megabyte within a second.
	fastEnough = 20 * time.Millisecond
)

// Linear fails the test if a parser's time grows faster than the length of the text. The function work must parse the
// text in the calling goroutine. Linear measures the CPU time of a thread, which does not depend on the load of the
// machine. It tries several times, and compares the shortest times.
func Linear(t *testing.T, texts func(size int) map[string]string, work func(text string)) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector makes it fifteen times as slow; go test without it, and scripts/test --long, run it")
	}
	short, long := texts(small), texts(factor*small)
	for _, name := range slices.Sorted(maps.Keys(long)) {
		measure := func(text string) func() time.Duration {
			return func() time.Duration { return processorTime(func() { work(text) }) }
		}
		if grows, ratio := growth(measure(short[name]), measure(long[name])); grows {
			t.Errorf("%s: %d times the text is %.1f times the work", name, factor, ratio)
		}
	}
}

// growth reports whether the work for the long text is too much, compared with the work for the short text. The ratio is
// 0 if the work for the long text is fast enough in any case.
func growth(short, long func() time.Duration) (grows bool, ratio float64) {
	least, leastLong := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for try := 1; try <= manyTries; try++ {
		leastLong = min(leastLong, long())
		if leastLong < fastEnough {
			return false, 0
		}
		least = min(least, max(short(), 1))
		ratio = float64(leastLong) / float64(least)
		if try >= fewTries && ratio < most {
			return false, ratio
		}
	}
	return true, ratio
}

// processorTime calls work and returns the CPU time that the call took.
func processorTime(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from := threadTime()
	work()
	return threadTime() - from
}

func threadTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		panic(err) // cannot happen, because every Linux has this clock
	}
	return time.Duration(at.Nano())
}

// Benchmark measures the CPU time that work needs for a megabyte of each text.
func Benchmark(b *testing.B, texts func(size int) map[string]string, work func(text string)) {
	all := texts(1 << 20)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				took += processorTime(func() { work(all[name]) })
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/MB")
			b.ReportMetric(0, "ns/op") // hide this figure, because it depends on the load of the machine
		})
	}
}
