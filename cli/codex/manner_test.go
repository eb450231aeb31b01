package codex

import (
	"testing"

	"ductor/cli"
)

func TestPermissionModes(t *testing.T) {
	cases := []struct {
		mode       cli.PermissionMode
		attended   bool
		configured string
		want       manner
	}{
		{cli.Plan, false, "", manner{askNever, readOnly}},
		{cli.Plan, true, "", manner{askNever, readOnly}},
		{cli.Plan, true, fullAccess, manner{askNever, readOnly}},
		{cli.Ask, false, "", manner{askNever, readOnly}},
		{cli.Ask, false, fullAccess, manner{askNever, readOnly}},
		{cli.Ask, true, "", manner{askUntrusted, workspaceWrite}},
		{cli.Ask, true, readOnly, manner{askUntrusted, readOnly}},
		{"", true, "", manner{askUntrusted, workspaceWrite}},
		{"", false, "", manner{askNever, readOnly}},
		{cli.AcceptEdits, false, "", manner{askNever, workspaceWrite}},
		{cli.AcceptEdits, true, "", manner{askUntrusted, workspaceWrite}},
		{cli.Auto, false, "", manner{askNever, workspaceWrite}},
		{cli.Auto, true, "", manner{askOnRequest, workspaceWrite}},
		{cli.Auto, true, fullAccess, manner{askOnRequest, fullAccess}},
		{cli.Bypass, false, readOnly, manner{askNever, fullAccess}},
		{cli.Bypass, true, "", manner{askNever, fullAccess}},
	}
	for _, c := range cases {
		if got := mannerOf(c.mode, c.attended, c.configured); got != c.want {
			t.Errorf("%q attended %v sandbox %q: %+v, want %+v", c.mode, c.attended, c.configured, got, c.want)
		}
	}
}

func TestVersionsThatHaveTheAppServer(t *testing.T) {
	for version, want := range map[string]bool{
		"0.169.0": true, "0.100.0-alpha.1": true, "0.99.0": false, "0.21": false, "1.0.0": true, "odd": true,
	} {
		if got := hasAppServer(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
