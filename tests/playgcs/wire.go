package playgcs

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message that is being written.
type message []byte

func (m *message) bytes(field protowire.Number, value []byte) {
	*m = protowire.AppendTag(*m, field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, value)
}

func (m *message) text(field protowire.Number, value string) {
	if value != "" {
		m.bytes(field, []byte(value))
	}
}

func (m *message) number(field protowire.Number, value int64) {
	if value != 0 {
		*m = protowire.AppendTag(*m, field, protowire.VarintType)
		*m = protowire.AppendVarint(*m, uint64(value))
	}
}

func (m *message) flag(field protowire.Number, value bool) {
	if value {
		m.number(field, 1)
	}
}

// amounts writes a map<string, double>.
func (m *message) amounts(field protowire.Number, amounts map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		var entry message
		entry.text(1, name)
		entry = protowire.AppendTag(entry, 2, protowire.Fixed64Type)
		entry = protowire.AppendFixed64(entry, math.Float64bits(amounts[name]))
		m.bytes(field, entry)
	}
}

// labels writes a map<string, string>.
func (m *message) labels(field protowire.Number, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		var entry message
		entry.text(1, name)
		entry.text(2, labels[name])
		m.bytes(field, entry)
	}
}

// fields are a message that was read: of each field all values, those of
// numbers in wire form.
type fields map[protowire.Number][]value

type value struct {
	number uint64
	bytes  []byte
}

func parse(raw []byte) (fields, error) {
	found := fields{}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, fmt.Errorf("a field's tag: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(raw)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(raw)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(raw)
		default:
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return nil, fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		raw = raw[n:]
		found[number] = append(found[number], v)
	}
	return found, nil
}

func (f fields) bytes(field protowire.Number) []byte {
	if values := f[field]; len(values) > 0 {
		return values[len(values)-1].bytes
	}
	return nil
}

func (f fields) number(field protowire.Number) int64 {
	if values := f[field]; len(values) > 0 {
		return int64(values[len(values)-1].number)
	}
	return 0
}

// amounts reads a map<string, double>.
func (f fields) amounts(field protowire.Number) (map[string]float64, error) {
	amounts := map[string]float64{}
	for _, v := range f[field] {
		entry, err := parse(v.bytes)
		if err != nil {
			return nil, err
		}
		bits := uint64(0)
		if values := entry[2]; len(values) > 0 {
			bits = values[len(values)-1].number
		}
		amounts[string(entry.bytes(1))] = math.Float64frombits(bits)
	}
	return amounts, nil
}
