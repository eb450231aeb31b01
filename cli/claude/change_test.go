package claude

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

func TestFileChange(t *testing.T) {
	tests := []struct {
		name          string
		tool          string
		input, result string
		want          cli.FileChanged
		none          bool
	}{
		{
			name: "a new file", tool: "Write",
			result: `{"type":"create","filePath":"/srv/proj/a.txt","content":"one\ntwo\n","structuredPatch":[],"originalFile":null}`,
			want:   cli.FileChanged{Path: "a.txt", Kind: cli.FileAdded, Diff: "@@ -0,0 +1,2 @@\n+one\n+two\n"},
		},
		{
			name: "a new file without a last newline", tool: "Write",
			result: `{"type":"create","filePath":"/srv/proj/a.txt","content":"one","structuredPatch":[]}`,
			want:   cli.FileChanged{Path: "a.txt", Kind: cli.FileAdded, Diff: "@@ -0,0 +1,1 @@\n+one\n\\ No newline at end of file\n"},
		},
		{
			name: "an empty new file", tool: "Write",
			result: `{"type":"create","filePath":"/srv/proj/a.txt","content":"","structuredPatch":[]}`,
			want:   cli.FileChanged{Path: "a.txt", Kind: cli.FileAdded},
		},
		{
			name: "an edit", tool: "Edit",
			result: `{"filePath":"/etc/hosts","structuredPatch":[{"oldStart":3,"oldLines":2,"newStart":3,"newLines":2,"lines":[" keep","-old","+new"]}]}`,
			want:   cli.FileChanged{Path: "/etc/hosts", Kind: cli.FileUpdated, Diff: "@@ -3,2 +3,2 @@\n keep\n-old\n+new\n"},
		},
		{
			name: "an edit by a sub-agent, of which only the input is known", tool: "Edit",
			input: `{"file_path":"/srv/proj/b.go"}`,
			want:  cli.FileChanged{Path: "b.go", Kind: cli.FileUpdated},
		},
		{name: "a read changes nothing", tool: "Read", input: `{"file_path":"/srv/proj/b.go"}`, result: `{"filePath":"/srv/proj/b.go"}`, none: true},
		{name: "an edit of nobody knows what", tool: "Edit", input: `{}`, none: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := toolCall{name: tt.tool, input: json.RawMessage(tt.input)}
			got, ok := fileChange(call, json.RawMessage(tt.result), "/srv/proj")
			if ok == tt.none {
				t.Fatalf("changed: %v", ok)
			}
			if diff := cmp.Diff(tt.want, got); ok && diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}
