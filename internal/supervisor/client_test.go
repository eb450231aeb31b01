package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"math/rand/v2"
)

// runClient is a client that dies: it attaches where its predecessor had come to, and hands on what it
// reads. What was handed on is what it has durably processed.
func runClient() (int, error) {
	root, err := Open(os.Getenv("ROOT"), Options{})
	if err != nil {
		return 1, err
	}
	offset, err := strconv.ParseInt(os.Getenv("OFFSET"), 10, 64)
	if err != nil {
		return 1, err
	}
	run, err := root.Attach(context.Background(), os.Getenv("RUN"), offset)
	if err != nil {
		return 1, err
	}
	if _, err := io.Copy(os.Stdout, run.Stdout()); err != nil {
		return 1, err
	}
	<-run.Done()
	return run.Exit().Code, nil
}

// client runs a client until after, and gives what it read before it was killed.
func client(t *testing.T, root *Root, id string, offset int64, after time.Duration) (got []byte, whole bool) {
	t.Helper()
	cmd := exec.Command(self(t))
	cmd.Env = append(withoutHelper(os.Environ()), helperVar+"=client", "ROOT="+root.dir, "RUN="+id, "OFFSET="+strconv.FormatInt(offset, 10))
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	got, err = io.ReadAll(out)
	timer.Stop()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		t.Fatalf("client: %v: %s", err, complaints.String())
	}
	return got, err == nil
}

func TestEveryByteOnceWhoeverDies(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	const lines, fewest, deaths = 4000, 3, 12
	enough := filepath.Join(t.TempDir(), "enough") // clients were killed: the agent may end
	run := start(t, root, sh(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo "line $i"; i=$((i+1)); [ $((i %% 40)) = 0 ] && sleep 0.03; done
until [ -e %s ]; do sleep 0.03; done; exit 0`, lines, enough)))
	run.Detach()
	var got strings.Builder
	kills := 0
	for {
		after := time.Minute
		if kills < deaths {
			after = time.Duration(rand.IntN(500)) * time.Millisecond
		}
		part, whole := client(t, root, run.ID(), int64(got.Len()), after)
		got.Write(part)
		if whole {
			break
		}
		if kills++; kills == fewest {
			if err := os.WriteFile(enough, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes came, %d are right", got.Len(), want.Len())
	}
	t.Logf("%d clients were killed", kills)
}

func TestLaterOwnerWins(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	if _, err := io.WriteString(run.Stdin(), "for both\n"); err != nil {
		t.Fatal(err)
	}
	readLine(t, run.Stdout())
	second := attach(t, root, run.ID(), 0)
	var taken *TakenError
	if _, err := run.Stdout().Read(make([]byte, 1)); !errors.As(err, &taken) || taken.PID != os.Getpid() {
		t.Fatalf("the first owner reads %v", err)
	}
	await(t, "done of the one that was cut off", run.Done())
	if run.Exit().Known || !errors.As(run.Err(), &taken) {
		t.Errorf("it believes %+v, %v", run.Exit(), run.Err())
	}
	if _, err := io.WriteString(run.Stdin(), "too late\n"); err == nil {
		t.Error("the first owner still writes")
	}
	if err := run.Stop(t.Context(), 0); !errors.As(err, &taken) {
		t.Errorf("the first owner's stop gives %v", err)
	}
	if got := readLine(t, second.Stdout()); got != "for both" {
		t.Errorf("the second reads %q", got)
	}
	if _, err := io.WriteString(second.Stdin(), "mine\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, second.Stdout()); got != "mine" {
		t.Errorf("the second reads %q", got)
	}
}

func TestGuestReadsAlong(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	guest, err := root.Follow(t.Context(), run.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(run.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if a, b := readLine(t, run.Stdout()), readLine(t, guest.Stdout()); a != "hello" || b != "hello" {
		t.Errorf("%q and %q", a, b)
	}
	if _, err := io.WriteString(guest.Stdin(), "x"); err == nil {
		t.Error("a guest may write")
	}
	guest.Detach()
	if info, err := run.Inspect(t.Context()); err != nil || !info.Attached || info.AttachedBy != os.Getpid() {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestSlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := helper(t, "lines", "LINES=4096")
	spec.Limits.MaxSpool = 512 << 10 // of 4 MB
	run := start(t, root, spec)
	time.Sleep(300 * time.Millisecond) // the agent fills everything there is, and waits
	if info, err := run.Inspect(t.Context()); err != nil || !info.Alive || info.Spooled > 600<<10 {
		t.Errorf("%+v, %v", info, err)
	}
	checkLines(t, run.Stdout(), 0, 4096)
	if run.LostBytes() != 0 {
		t.Errorf("%d bytes lost", run.LostBytes())
	}
}

// checkLines reads lines numbered from to to, and the end.
func checkLines(t *testing.T, r io.Reader, from, to int) {
	t.Helper()
	raw := readAll(t, r)
	if len(raw) != (to-from)*lineLength {
		t.Fatalf("%d bytes, want %d", len(raw), (to-from)*lineLength)
	}
	for i := from; i < to; i++ {
		if line := raw[(i-from)*lineLength:][:lineLength]; line != numbered(i) {
			t.Fatalf("line %d is %.20q", i, line)
		}
	}
}

func TestLossIsShownAndTheEndIsThere(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := helper(t, "lines", "LINES=4096")
	spec.Limits.MaxSpool = 512 << 10
	run := start(t, root, spec)
	run.Detach() // no client reads
	eventually(t, "the agent ends", func() bool {
		info := root.look(t.Context(), run.ID())
		return info.Status != nil && info.Status.Ended
	})
	again := attach(t, root, run.ID(), 0)
	var lost *LostError
	buf := make([]byte, 1)
	if _, err := again.Stdout().Read(buf); err == nil { // what the first owner let pass
		for err == nil {
			_, err = again.Stdout().Read(buf)
		}
		if !errors.As(err, &lost) {
			t.Fatal(err)
		}
	} else if !errors.As(err, &lost) {
		t.Fatal(err)
	}
	if lost.Damaged || lost.To <= lost.From || again.LostBytes() != lost.To-lost.From {
		t.Errorf("%+v, %d", lost, again.LostBytes())
	}
	raw := readAll(t, again.Stdout())
	if lost.To+int64(len(raw)) != 4096*lineLength || !strings.HasSuffix(raw, numbered(4095)) {
		t.Errorf("%d bytes from %d on, ending in %.20q", len(raw), lost.To, raw[max(0, len(raw)-lineLength):])
	}
	if len(raw) < 300<<10 {
		t.Errorf("only %d bytes of 512 kB are kept", len(raw))
	}
	eventually(t, "the status knows of the loss", func() bool { return again.Status().Missing > 0 })
}
