package supervisor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func FuzzFrames(f *testing.F) {
	var good bytes.Buffer
	w := &frameWriter{w: &good}
	for _, err := range []error{w.json(kindHello, hello{Protocol: ours(), Role: roleOwn}), w.marked(kindOutput, 7, []byte("x")), w.bytes(kindStderr, nil)} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Add(good.Bytes())
	f.Add([]byte("O\x00\x3f\xff\xff"))
	f.Add([]byte("O\xff\xff\xff\xffxyz"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := newFrameReader(bytes.NewReader(raw))
		var again bytes.Buffer
		w := &frameWriter{w: &again}
		for {
			k, payload, err := r.next()
			if err != nil {
				if err == io.EOF && !bytes.Equal(again.Bytes(), raw) {
					t.Fatal("frames that were read whole are not what was sent")
				}
				return
			}
			if mark, _, err := cutMark(payload); err == nil && mark < 0 {
				t.Fatal("a negative mark")
			}
			if err := w.bytes(k, payload); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestFramesThatAreCutOrTooLong(t *testing.T) {
	long := binary.BigEndian.AppendUint32([]byte("O"), maxFrame+1)
	for raw, want := range map[string]error{"": io.EOF, "O\x00": io.ErrUnexpectedEOF, "O\x00\x00\x00\x05ab": io.ErrUnexpectedEOF, string(long): nil} {
		_, _, err := newFrameReader(strings.NewReader(raw)).next()
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q gives %v", raw, err)
		}
	}
	if _, _, err := cutMark(binary.BigEndian.AppendUint64(nil, math.MaxUint64)); err == nil {
		t.Error("a negative mark passes")
	}
}

func TestImportsNothingButTheSystem(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			first, _, _ := strings.Cut(path, "/")
			if path != "golang.org/x/sys/unix" && path != "ductor/internal/proctree" && (first == "ductor" || strings.Contains(first, ".")) || path == "net/http" || path == "C" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// What the keeper does depends on facts alone, and on no clock that can be set.
func TestKeeperDuties(t *testing.T) {
	limits := Limits{MaxAge: 100 * time.Second, OrphanAfter: 50 * time.Second, LeftoverAfter: 10 * time.Second, KeepResult: 20 * time.Second}
	none := Limits{MaxAge: -1, OrphanAfter: -1, LeftoverAfter: -1, KeepResult: -1}
	s := time.Second
	for name, tc := range map[string]struct {
		facts facts
		want  duty
	}{
		"young and owned":            {facts{now: 10 * s, owned: true, limits: limits}, duty{at: 40 * s}},
		"a deadline is near":         {facts{now: 95 * s, owned: true, limits: limits}, duty{at: 100 * s}},
		"too old, though owned":      {facts{now: 100 * s, owned: true, limits: limits}, duty{end: ByMaxAge, at: 100 * s}},
		"the age counts from anew":   {facts{now: 100 * s, ageFrom: 60 * s, owned: true, limits: limits}, duty{at: 130 * s}},
		"orphaned":                   {facts{now: 60 * s, idleFrom: 10 * s, limits: limits}, duty{end: ByOrphaned, at: 60 * s}},
		"not orphaned while owned":   {facts{now: 60 * s, idleFrom: 10 * s, owned: true, limits: limits}, duty{at: 90 * s}},
		"unlimited":                  {facts{now: 1000000 * s, limits: none}, duty{at: 1000030 * s}},
		"leftovers, no client there": {facts{now: 30 * s, exitedAt: 20 * s, exited: true, limits: limits}, duty{sweep: true, at: 30 * s}},
		"leftovers, owner there":     {facts{now: 30 * s, exitedAt: 20 * s, exited: true, owned: true, limits: limits}, duty{at: 60 * s}},
		"result waits":               {facts{now: 30 * s, exitedAt: 20 * s, exited: true, alone: true, limits: limits}, duty{at: 40 * s}},
		"result waited enough":       {facts{now: 40 * s, exitedAt: 20 * s, exited: true, alone: true, limits: limits}, duty{leave: true, at: 40 * s}},
		"the owner left just now":    {facts{now: 40 * s, exitedAt: 20 * s, idleFrom: 39 * s, exited: true, alone: true, limits: limits}, duty{at: 59 * s}},
		"collected":                  {facts{now: 21 * s, exitedAt: 20 * s, exited: true, owned: true, collected: true, limits: limits}, duty{leave: true}},
		"dead agents have no age":    {facts{now: 500 * s, exitedAt: 495 * s, exited: true, owned: true, limits: limits}, duty{at: 530 * s}},
	} {
		if got := tc.facts.next(); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestAgreement(t *testing.T) {
	for _, tc := range []struct {
		client, server Protocol
		want           int
	}{
		{Protocol{1, 1}, Protocol{1, 1}, 1}, {Protocol{5, 3}, Protocol{3, 1}, 3}, {Protocol{3, 1}, Protocol{5, 3}, 3},
		{Protocol{5, 4}, Protocol{3, 1}, 0}, {Protocol{3, 1}, Protocol{5, 4}, 0}, {Protocol{}, Protocol{1, 1}, 0},
	} {
		got, err := agree(tc.client, tc.server)
		var no *VersionError
		if got != tc.want || (tc.want == 0) != errors.As(err, &no) {
			t.Errorf("%v and %v agree on %d, %v", tc.client, tc.server, got, err)
		}
	}
}

func TestCommandLineWithoutSecrets(t *testing.T) {
	spec := Spec{
		Path: "/bin/agent", Env: []string{"OPENAI_API_KEY=sk-12345678", "TERM=xterm-256color", "SHORT_TOKEN=abc"},
		Args: []string{"-p", "--api-key", "k1", "--api-key=k2", "--auth-token", "--verbose", "use sk-12345678 here", "xterm-256color", "abc", "--Password", "p"},
	}
	want := []string{"/bin/agent", "-p", "--api-key", "***", "--api-key=***", "--auth-token", "--verbose", "use *** here", "xterm-256color", "abc", "--Password", "***"}
	if diff := cmp.Diff(want, spec.shown()); diff != "" {
		t.Error(diff)
	}
}

func TestMarkReplacesAnotherOne(t *testing.T) {
	spec := Spec{ID: "new", Env: []string{"A=1", "DUCTOR_RUN=old", "B=2"}}
	if diff := cmp.Diff([]string{"A=1", "B=2", "DUCTOR_RUN=new"}, spec.environment()); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsAreForZeroesOnly(t *testing.T) {
	got := Limits{MaxAge: time.Second, OrphanAfter: -1, MaxSpool: 1}.withDefaults()
	want := Limits{MaxAge: time.Second, OrphanAfter: -1, LeftoverAfter: defaultLeftoverAfter, KeepResult: defaultKeepResult, Grace: defaultGrace, MaxSpool: minJournal}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestInboxTellsLossesInTheirPlace(t *testing.T) {
	var granted []int64
	b := newInbox(100, func(limit int64) { granted = append(granted, limit) })
	for _, err := range []error{b.put(100, []byte("abc")), b.lose(lossNote{From: 103, To: 110}), b.lose(lossNote{From: 110, To: 120, Damaged: true}), b.put(120, []byte("de"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if b.put(121, nil) == nil || b.lose(lossNote{From: 0, To: 3}) == nil || b.lose(lossNote{From: 122, To: 121}) == nil {
		t.Error("what does not follow is taken")
	}
	b.close(io.EOF)
	b.close(ErrGone)
	var got []string
	for buf := make([]byte, 2); ; {
		n, err := b.Read(buf)
		if err == io.EOF {
			break
		}
		offset, lost := b.position()
		got = append(got, strings.Join([]string{string(buf[:n]), itoa(int(offset)), itoa(int(lost))}, " "))
		var gap *LostError
		if err != nil && !errors.As(err, &gap) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"ab 102 0", "c 103 0", " 110 7", " 120 17", "de 122 17"}, got); diff != "" {
		t.Error(diff)
	}
}
