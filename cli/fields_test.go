package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeaves(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	many := "[" + strings.Repeat("1,", 5000) + "1]"
	for input, want := range map[string][]Leaf{
		``:                          nil,
		`{}`:                        {{"input", "{}", true}},
		`"x"`:                       {{"input", "x", false}},
		`{"a":1e400,"b":[true,{}]}`: {{"a", "1e400", false}, {"b[0]", "true", false}, {"b[1]", "{}", true}},
		`{"a":"x","a":null}`:        {{"a", "x", false}, {"a", "null", true}},
		`{"a.b":{"[0]":"x"}}`:       {{`["a.b"]["[0]"]`, "x", false}},
		`{"a":{"b":"\u202e\n"}}`:    {{"a.b", "\u202e\n", false}},
		`no json`:                   {{"input", "no json", false}},
		deep:                        {{"input", deep, false}},
		many:                        {{"input", many, false}},
	} {
		if diff := cmp.Diff(want, Leaves(json.RawMessage(input))); diff != "" {
			t.Errorf("%.60s: %s", input, diff)
		}
	}
}

func TestWhatAFieldWeighs(t *testing.T) {
	r := Reading{
		Dir: "/w", Said: map[string]string{"command": "ls"}, Usual: map[string]string{"kind": "command"},
		Labels: []string{"id"}, Wider: []string{"permissions"},
	}
	for input, want := range map[string]string{
		`{"command":"ls"}`:                            "",
		`{"command":"rm"}`:                            "plain command=rm",
		`{"command":"rm","command":"ls"}`:             "plain command=rm",
		`{"COMMAND":"ls"}`:                            "plain COMMAND=ls",
		`{"kind":"command"}`:                          "label kind=command",
		`{"kind":"stdin"}`:                            "plain kind=stdin",
		`{"id":{"x":1}}`:                              "label id.x=1",
		`{"ids":1}`:                                   "plain ids=1",
		`{"cwd":"/w/"}`:                               "label cwd=/w/",
		`{"cwd":"/w/../etc"}`:                         "wider cwd=/w/../etc",
		`{"cwd":null}`:                                "label cwd=null",
		`{"a":[{"workdir":"sub"}]}`:                   "wider a[0].workdir=sub",
		`{"permissions":{"write":["/"]}}`:             "wider permissions.write[0]=/",
		`{"permissions":null}`:                        "label permissions=null",
		`{"permissions":{"network":false}}`:           "plain permissions.network=false",
		`{"x":{"dangerouslyDisableSandbox":true}}`:    "wider x.dangerouslyDisableSandbox=true",
		`{"x":{"dangerouslyDisableSandbox":"false"}}`: "wider x.dangerouslyDisableSandbox=false",
		`{"id.permissions":1}`:                        `plain ["id.permissions"]=1`,
		`{"targets":null}`:                            "plain targets=null",
	} {
		var got []string
		for _, f := range r.Fields(json.RawMessage(input)) {
			weight := string(f.Weight)
			if weight == "" {
				weight = "plain"
			}
			got = append(got, weight+" "+f.Name+"="+f.Value)
		}
		if !slices.Equal(got, slices.DeleteFunc([]string{want}, func(s string) bool { return s == "" })) {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}
