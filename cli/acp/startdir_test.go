package acp

import (
	"testing"

	"ductor/cli"
)

// Gemini reads the settings of a project only if it starts there. A wrapper such as npx would start the project's code.
func TestWhereProcessesStart(t *testing.T) {
	for _, tc := range []struct {
		path    string
		project cli.ProjectSettings
		want    string
	}{
		{"gemini", cli.WithoutProject, "/start"},
		{"/usr/bin/gemini", cli.WithProject, "/project"},
		{"npx", cli.WithProject, "/start"},
		{"/opt/bin/uvx", cli.WithProject, "/start"},
	} {
		o := Options{ProviderOptions: cli.ProviderOptions{Path: tc.path}, StartDir: "/start"}
		if got := o.startDir(cli.Request{Dir: "/project", Project: tc.project}); got != tc.want {
			t.Errorf("%s starts in %s, want %s", tc.path, got, tc.want)
		}
	}
}
