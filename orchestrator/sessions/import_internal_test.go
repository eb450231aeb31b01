package sessions

import (
	"errors"
	"testing"

	"ductor/orchestrator"
)

// Any file is an export, or it is refused as none.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"ductor_session":1,"title":"a","dir":"/d","turns":[{"prompt":"hi","answer":"ho","state":"done"}]}`))
	f.Add([]byte(`{"ductor_session":1} x`))
	f.Fuzz(func(t *testing.T, file []byte) {
		in, err := parseExport(file)
		switch {
		case err != nil && !errors.Is(err, orchestrator.ErrNoExport):
			t.Fatal(err)
		case err == nil && (len(in.Turns) > exportedTurns || len(in.Title) > titleMax || in.Version != exportVersion):
			t.Fatalf("%+v", in)
		}
	})
}
