package gemini

import (
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
		model, total := usageInMeta([]byte(`{"quota":{"model_usage":[` + models + `]}}`))
		if _, counts := want[model]; !counts || !maps.Equal(total.ByModel, want) {
			t.Errorf("%s: model %q, %+v, want %+v", models, model, total.ByModel, want)
		}
	}
}

// Other metadata contains no usage.
func TestMetadataWithoutAQuota(t *testing.T) {
	for _, meta := range []string{"", "null", `{}`, `{"quota":7}`} {
		model, total := usageInMeta([]byte(meta))
		if model != "" || total.ByModel != nil || total.Usage != (cli.Usage{}) {
			t.Errorf("%s: %q, %+v", meta, model, total)
		}
	}
}
