package acp

import (
	"testing"

	"ductor/cli"
)

// An agent starts in the project, a wrapper such as npx does not: it would start the project's code.
func TestWhereProcessesStart(t *testing.T) {
	for _, tc := range []struct {
		path string
		want string
	}{
		{"gemini", "/project"},
		{"/usr/bin/gemini", "/project"},
		{"npx", "/start"},
		{"/opt/bin/uvx", "/start"},
	} {
		o := Options{ProviderOptions: cli.ProviderOptions{Path: tc.path}, StartDir: "/start"}
		if got := o.startDir(cli.Request{Dir: "/project"}); got != tc.want {
			t.Errorf("%s starts in %s, want %s", tc.path, got, tc.want)
		}
	}
}
