package cli

import (
	"maps"
	"testing"
)

func TestConsumptionOfATurnInParts(t *testing.T) {
	first := Consumption{CostUSD: 0.5, Turns: 2, Usage: Usage{Input: 3}}
	first.AddModel("a", Usage{Input: 1})
	first.AddModel("a", Usage{Input: 2})
	var total Consumption
	total.Add(first)
	total.Add(Consumption{CostUSD: 0.25, Turns: 1, Usage: Usage{Output: 4}, ByModel: map[ModelID]Usage{
		"a": {Output: 1}, "b": {Output: 3},
	}})
	if total.CostUSD != 0.75 || total.Turns != 3 || total.Usage != (Usage{Input: 3, Output: 4}) {
		t.Errorf("%+v", total)
	}
	want := map[ModelID]Usage{"a": {Input: 3, Output: 1}, "b": {Output: 3}}
	if !maps.Equal(total.ByModel, want) {
		t.Errorf("by model %+v, want %+v", total.ByModel, want)
	}
	if !maps.Equal(first.ByModel, map[ModelID]Usage{"a": {Input: 3}}) {
		t.Errorf("the first part changed: %+v", first.ByModel)
	}
}
