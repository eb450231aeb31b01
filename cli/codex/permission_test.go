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
		want       permissions
	}{
		{cli.Plan, false, "", permissions{askNever, readOnly}},
		{cli.Plan, true, "", permissions{askNever, readOnly}},
		{cli.Plan, true, fullAccess, permissions{askNever, readOnly}},
		{cli.Ask, false, "", permissions{askNever, readOnly}},
		{cli.Ask, false, fullAccess, permissions{askNever, readOnly}},
		{cli.Ask, true, "", permissions{askUntrusted, workspaceWrite}},
		{cli.Ask, true, readOnly, permissions{askUntrusted, readOnly}},
		{"", true, "", permissions{askUntrusted, workspaceWrite}},
		{"", false, "", permissions{askNever, readOnly}},
		{cli.AcceptEdits, false, fullAccess, permissions{askNever, readOnly}},
		{cli.AcceptEdits, true, "", permissions{askUntrusted, workspaceWrite}},
		{cli.Auto, false, "", permissions{askNever, workspaceWrite}},
		{cli.Auto, true, "", permissions{askOnRequest, workspaceWrite}},
		{cli.Auto, true, fullAccess, permissions{askOnRequest, fullAccess}},
		{cli.Bypass, false, readOnly, permissions{askNever, fullAccess}},
		{cli.Bypass, true, "", permissions{askNever, fullAccess}},
	}
	for _, c := range cases {
		if got := permissionsOf(c.mode, c.attended, c.configured); got != c.want {
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

func TestAThreadKnowsWhetherToTrustItsProject(t *testing.T) {
	for settings, want := range map[cli.ProjectSettings]string{
		cli.WithoutProject: `{"/":{"trust_level":"untrusted"},"/a":{"trust_level":"untrusted"}}`,
		cli.WithProject:    `{"/":{"trust_level":"trusted"},"/a":{"trust_level":"trusted"}}`,
		cli.EmptyProject:   `null`,
	} {
		config := (&thread{}).config(cli.Request{Dir: "/a", Project: settings})
		if got := string(jsonOf(config["projects"])); got != want {
			t.Errorf("%q: %s, want %s", settings, got, want)
		}
	}
}
