package main

import (
	"io"
	"strings"
	"testing"
)

func told(t *testing.T, lines ...string) string {
	t.Helper()
	var out strings.Builder
	if _, err := tell(strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatMattersIsTold(t *testing.T) {
	got := told(t,
		`{"Action":"output","Package":"p","Test":"TestGood","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":1.5}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:1: the reason\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}`,
		`{"Action":"output","Package":"p","Test":"TestLeft","Output":"=== RUN   TestLeft\n"}`,
		`{"Action":"output","Package":"p","Test":"TestLeft","Output":"    x_test.go:2: no engine\n"}`,
		`{"Action":"output","Package":"p","Test":"TestLeft","Output":"--- SKIP: TestLeft (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestLeft","Elapsed":0}`,
		`{"Action":"output","Package":"p","Test":"TestCut","Output":"panic: oh\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t2.0s\n"}`,
		`{"Action":"fail","Package":"p","Elapsed":2}`,
		`{"ImportPath":"q","Action":"build-output","Output":"q.go:1: does not compile\n"}`,
		`not JSON`,
	)
	for _, want := range []string{"the reason", "panic: oh", "FAIL\tp", "q.go:1: does not compile", "not JSON",
		"  no engine:\n    p TestLeft\n", "1.5s p TestGood"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not told in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "chatter") {
		t.Errorf("the talk of a test that passed is told:\n%s", got)
	}
}

// TestTestsAreCounted tests that each row of a table counts as a test, and a package does not.
func TestTestsAreCounted(t *testing.T) {
	got, err := tell(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestGood/one"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"skip","Package":"p","Test":"TestLeft"}
{"Action":"fail","Package":"p"}
`), io.Discard)
	if want := (counts{passed: 2, failed: 1, skipped: 1}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAPackageThatPassedIsOneLine(t *testing.T) {
	got := told(t,
		`{"Action":"output","Package":"p","Output":"a warning\n"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t2.0s\n"}`,
		`{"Action":"pass","Package":"p","Elapsed":2}`,
	)
	if !strings.HasPrefix(got, "ok  \tp\t2.0s\n\nslowest") {
		t.Errorf("told %q", got)
	}
}

func TestAPanicThatEndsAProgramIsTold(t *testing.T) {
	got := told(t,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"panic: oh\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}`,
	)
	if !strings.Contains(got, "panic: oh") {
		t.Errorf("told %q", got)
	}
}

// TestACrashIsToldOnceMoreAtTheEnd tests that the summary contains the runtime's report for a test that timed out and
// for one that raced, but not for tests that were interrupted in the same package.
func TestACrashIsToldOnceMoreAtTheEnd(t *testing.T) {
	got := told(t,
		`{"Action":"output","Package":"p","Test":"TestRaces","Output":"WARNING: DATA RACE\n"}`,
		`{"Action":"output","Package":"p","Test":"TestRaces","Output":"Write at 0x1\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestRaces","Elapsed":0.1}`,
		`{"Action":"output","Package":"p","Test":"TestBeside","Output":"=== RUN   TestBeside\n"}`,
		`{"Action":"output","Package":"p","Test":"TestCut","Output":"panic: test timed out after 1s\n"}`,
		`{"Action":"output","Package":"p","Test":"TestCut","Output":"`+
			strings.Repeat(`goroutine\n","Test":"TestCut","Package":"p","Action":"output"}
{"Action":"output","Package":"p","Test":"TestCut","Output":"`, 100)+`"}`,
		`{"Action":"fail","Package":"p","Elapsed":2}`,
	)
	_, end, _ := strings.Cut(got, "failed tests: 2\n")
	if !strings.HasPrefix(end, "p TestRaces\nWARNING: DATA RACE\nWrite at 0x1\np TestCut\npanic: test timed out") ||
		strings.Count(end, "goroutine") != 39 {
		t.Errorf("the end is %q", end)
	}
}

func TestWhatFailedIsToldOnceMoreAtTheEnd(t *testing.T) {
	got := told(t,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"=== RUN   TestBad\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:1: log: one\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:9: told twice\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"        in a chat\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:1: log: two\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:5: `+strings.Repeat("ä", 1000)+
			`\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBad","Output":"SIGQUIT: quit\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}`,
		`{"Action":"fail","Package":"p","Elapsed":2}`,
	)
	_, end, _ := strings.Cut(got, "failed tests: 1\n")
	if !strings.HasPrefix(end, "p TestBad\n    x_test.go:9: told twice\n        in a chat\n    x_test.go:1: log: "+
		"two\n    x_test.go:5: ä") || len(end) > 1200 {
		t.Errorf("the end is %q", end)
	}
}
