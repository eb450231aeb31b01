package acp

import (
	"encoding/json"
	"maps"
	"testing"

	"ductor/cli"
)

// Gemini 0.61 counts the calls after the first one of a turn under "auto". They belong to the model that it named.
func TestAChoiceIsNoModel(t *testing.T) {
	auto := `{"model":"auto","token_count":{"input_tokens":2400,"output_tokens":84}}`
	named := `{"model":"gemini-3.8-flash","token_count":{"input_tokens":1200,"output_tokens":42}}`
	for models, want := range map[string]map[cli.ModelID]cli.Usage{
		named + "," + auto: {"gemini-3.8-flash": {Input: 3600, Output: 126}},
		auto + "," + named: {"gemini-3.8-flash": {Input: 3600, Output: 126}},
		auto:               {"auto": {Input: 2400, Output: 84}},
	} {
		var p prompted
		if err := json.Unmarshal([]byte(`{"_meta":{"quota":{"model_usage":[`+models+`]}}}`), &p); err != nil {
			t.Fatal(err)
		}
		r := (&session{}).counted(p)
		if _, counts := want[r.Model]; !counts || !maps.Equal(r.ByModel, want) {
			t.Errorf("%s: model %q, %+v, want %+v", models, r.Model, r.ByModel, want)
		}
	}
}
