package supervisor

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a reader into which a piece is written every so often, n times, without a bound.
func drip(n int, every time.Duration) io.Reader {
	d := &dripping{more: make(chan struct{}, 1)}
	go func() {
		for i := range n {
			time.Sleep(every)
			d.add("piece\n", i == n-1)
		}
	}()
	return d
}

// dripping reads all that waits, as a socket does.
type dripping struct {
	mu      sync.Mutex
	waiting string
	ended   bool
	more    chan struct{}
}

func (d *dripping) add(s string, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting, d.ended = d.waiting+s, last
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *dripping) Read(p []byte) (int, error) {
	for {
		d.mu.Lock()
		n := copy(p, d.waiting)
		d.waiting = d.waiting[n:]
		ended := d.ended
		d.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		<-d.more
	}
}

// gathering is a paced reader that was told to be one.
func gathering(r io.Reader) *pacedReader {
	p := newPacedReader(r, nil)
	p.gather()
	return p
}

// readPaced reads r to its end and says what there was, in how many reads, and when each of them returned.
func readPaced(t *testing.T, r io.Reader) (text string, at []time.Duration) {
	t.Helper()
	start := time.Now()
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		all.Write(buf[:n])
		if err == io.EOF {
			return all.String(), at
		}
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, time.Since(start))
	}
}

func TestABusyStreamIsReadInGulps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 1000
		text, at := readPaced(t, gathering(drip(pieces, 5*time.Millisecond)))
		if text != strings.Repeat("piece\n", pieces) {
			t.Errorf("%d bytes came of %d pieces", len(text), pieces)
		}
		if most := paceSpare + pieces*5/50 + 2; len(at) > most {
			t.Errorf("%d reads, want at most %d", len(at), most)
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] > paceEvery {
				t.Errorf("read %d came %s after the one before", i, at[i]-at[i-1])
			}
		}
	})
}

func TestWhatIsWaitedForIsReadAtOnce(t *testing.T) {
	for name, r := range map[string]func() *pacedReader{
		"an answer": func() *pacedReader {
			p := newPacedReader(drip(200, time.Millisecond), func() bool { return true })
			p.gather()
			return p
		},
		"whatever comes, where no reader said that it may gather": func() *pacedReader {
			return newPacedReader(drip(200, time.Millisecond), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if _, at := readPaced(t, r()); len(at) != 200 || at[199] != 200*time.Millisecond {
					t.Errorf("%d reads of 200 pieces", len(at))
				}
			})
		})
	}
}

func TestWhatComesSeldomIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := readPaced(t, gathering(drip(200, paceEvery)))
		if len(at) != 200 {
			t.Fatalf("%d reads of 200 pieces", len(at))
		}
		for i := range at {
			if want := time.Duration(i+1) * paceEvery; at[i] != want {
				t.Fatalf("piece %d was read at %s, not at %s", i, at[i], want)
			}
		}
	})
}

func TestABurstAfterASilenceIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := readPaced(t, gathering(drip(paceSpare, time.Millisecond)))
		if len(at) != paceSpare || at[len(at)-1] != paceSpare*time.Millisecond {
			t.Errorf("reads at %v", at)
		}
	})
}

func TestBusyStreamsAreReadAtTheSameMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moments := map[time.Time]int{}
		done := make(chan []time.Time)
		for i := range 10 {
			go func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				start := time.Now()
				_, at := readPaced(t, gathering(drip(400, 10*time.Millisecond)))
				var times []time.Time
				for _, d := range at[2*paceSpare : len(at)-1] {
					times = append(times, start.Add(d))
				}
				done <- times
			}()
		}
		for range 10 {
			for _, at := range <-done {
				moments[at]++
			}
		}
		if most := 4000/50 + 2; len(moments) > most {
			t.Errorf("ten streams woke us %d times, want at most %d", len(moments), most)
		}
	})
}

func TestAFullBufferIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := gathering(strings.NewReader(strings.Repeat("x", 32*paceBig)))
		buf := make([]byte, paceBig)
		for range 32 {
			if n, err := r.Read(buf); n != len(buf) || err != nil {
				t.Fatal(n, err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("a megabyte that was there took %s", took)
		}
	})
}

func TestHurryEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := gathering(drip(1000, time.Millisecond))
		buf := make([]byte, 4096)
		for range paceSpare + 5 {
			if _, err := r.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			time.Sleep(10 * time.Millisecond)
			r.hurry()
		}()
		start := time.Now()
		if _, err := r.Read(buf); err != nil || time.Since(start) != 10*time.Millisecond {
			t.Errorf("read after %s: %v", time.Since(start), err)
		}
		for range paceSpare { // and then it is as quick as at first
			before := time.Now()
			if _, err := r.Read(buf); err != nil || time.Since(before) > time.Millisecond {
				t.Fatalf("a read after hurry took %s: %v", time.Since(before), err)
			}
		}
		_, _ = readPaced(t, r)
	})
}

func TestWhatComesInBulkIsReadAtFullSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := gathering(strings.NewReader(strings.Repeat("x", 8<<20)))
		buf := make([]byte, paceBig)
		sizes := []int{paceBig, paceBig, paceBig, 100, 100, 100} // a socket that is emptied faster than it is filled, and now and then is not
		for i := 0; ; i++ {
			n, err := r.Read(buf[:sizes[i%len(sizes)]])
			if err == io.EOF {
				break
			}
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("8 MB took %s of waiting", took)
		}
	})
}
