package steps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"ductor/cli"
)

// A Recorder keeps whole commands, the ends of outputs, and of too many the newest.
func TestARecorderKeepsWhatThereIsRoomFor(t *testing.T) {
	r := &Recorder{}
	use := func(id string, command, output string) {
		input, _ := json.Marshal(map[string]string{"command": command})
		r.Take(cli.ToolStarted{ID: cli.ToolID(id), Name: "Bash", Title: "short", Input: input})
		r.Take(cli.ToolEnded{ID: cli.ToolID(id), Output: output})
		r.Take(cli.ToolEnded{ID: cli.ToolID(id), Output: "once more"})
	}
	long := "go test ./...\n" + strings.Repeat("x", 1000)
	use("first", long, "out")
	r.Take(cli.FileChanged{Path: "a.go", Kind: cli.FileAdded, Diff: "@@ -0,0 +1 @@\n+a\n"})
	if s := r.Steps(); len(s) != 2 || s[0].Title != long || s[0].Output != "out" || s[1].Title != "a.go" || s[1].Number != 2 || s[1].Tool != "" {
		t.Errorf("recorded %+v", s)
	}
	use("wide", "c", strings.Repeat("é", mostOutput))
	if s := r.Steps()[2]; s.Size > mostOutput || s.Lost == 0 || !utf8.ValidString(s.Output) {
		t.Errorf("%d bytes are kept, %d lost", s.Size, s.Lost)
	}
	for i := range 2 * mostSteps {
		use(fmt.Sprint("many", i), "c", strings.Repeat("o", 100<<10))
	}
	sum := 0
	for _, s := range r.Steps() {
		if sum += len(s.Output); len(s.Output) != s.Size {
			t.Fatalf("step %d has %d bytes and says %d", s.Number, len(s.Output), s.Size)
		}
	}
	if last := r.Steps()[mostSteps-1]; len(r.Steps()) != mostSteps || sum > mostOfTurn || last.Size == 0 || r.Steps()[0].Size != 0 {
		t.Errorf("%d steps with %d bytes; the last has %d", len(r.Steps()), sum, last.Size)
	}
}
