package hostile

import (
	"testing"
	"time"
)

// TestASquareIsFound tests that Linear fails for quadratic work and passes for linear work.
func TestASquareIsFound(t *testing.T) {
	count := 0
	pass := func(size int) {
		sum := count
		for i := range size {
			sum += i ^ sum>>1
		}
		count = sum
	}
	line := func(size int) {
		for range 500 {
			pass(size)
		}
	}
	square := func(size int) {
		for range size / 350 {
			pass(size)
		}
	}
	for name, grows := range map[string]bool{"square": true, "line": false} {
		work := map[string]func(int){"square": square, "line": line}[name]
		measure := func(size int) func() time.Duration {
			return func() time.Duration { return processorTime(func() { work(size) }) }
		}
		got, ratio := growth(measure(small), measure(factor*small))
		if got != grows || ratio == 0 {
			t.Errorf("%s: %.1f times the work", name, ratio)
		}
	}
}

// Some of the measured times are too long. This neither hides quadratic work nor makes linear work fail.
func TestNoiseDoesNotChangeTheVerdict(t *testing.T) {
	const line, square = factor, factor * factor
	for name, c := range map[string]struct {
		short, long []int // how many times too long the first tries are, in percent of the undisturbed time
		work        int
		grows       bool
	}{
		"square":                   {nil, nil, square, true},
		"square, slow short text":  {[]int{900, 900}, nil, square, true},
		"square, noise everywhere": {[]int{300, 130, 200, 110}, []int{120, 150, 400}, square, true},
		"line":                     {nil, nil, line, false},
		"line, slow long text":     {nil, []int{900, 300, 210, 900, 400, 250, 900, 300, 220}, line, false},
		"line, noise everywhere":   {[]int{110, 300, 120}, []int{400, 260, 230}, line, false},
		"line, at the end of the noise": {[]int{150}, []int{900, 800, 700, 900, 800, 700, 900, 800, 700, 190}, line,
			false},
	} {
		const short = 100 * time.Millisecond
		times := func(undisturbed time.Duration, noise []int) func() time.Duration {
			try := -1
			return func() time.Duration {
				if try++; try < len(noise) {
					return undisturbed * time.Duration(noise[try]) / 100
				}
				return undisturbed
			}
		}
		grows, ratio := growth(times(short, c.short), times(short*time.Duration(c.work), c.long))
		if grows != c.grows {
			t.Errorf("%s: %.1f times the work", name, ratio)
		}
	}
}

func TestTextsAreAsLongAsAsked(t *testing.T) {
	for name, text := range All(10_000) {
		if len(text) < 10_000 || len(text) > 21_000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
}
