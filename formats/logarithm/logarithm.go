// Package logarithm computes logarithms that have the same bits on each machine.
//
// The input is a positive number, and the output its logarithm. Stored numbers depend on logarithms, and
// the same inputs must give the same stored bytes. The last bit of math.Log differs between machines: it
// is written in assembly on some, and on others the compiler fuses x*y + z into one rounding. Package
// recrawl explains how to avoid this. The results are those of math.Log and math.Log10 of Go 1.26 on
// amd64. Package logarithm imports the standard library only.
package logarithm

import "math"

// The method and the coefficients of Of are those of e_log.c of FreeBSD, which came with this notice:
//
//	Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//	Developed at SunPro, a Sun Microsystems, Inc. business. Permission to use, copy, modify, and distribute
//	this software is freely granted, provided that this notice is preserved.

// Of returns the natural logarithm of x, which must be positive and finite. Let x be 2^k·(1 + f), with 1 + f
// between √½ and √2, and let s be f/(2 + f). Then log(1 + f) is f − s·(f − R), with a polynomial R of s².
func Of(x float64) float64 {
	const (
		ln2High = 6.93147180369123816490e-01
		ln2Low  = 1.90821492927058770002e-10
	)
	m, exponent := math.Frexp(x)
	if m <= math.Sqrt2/2 {
		m, exponent = 2*m, exponent-1
	}
	f, k := float64(m)-1, float64(exponent)
	s := f / (2 + f)
	square := float64(s * s)
	fourth := float64(square * square)
	odd := float64(square * (6.666666666666735130e-01 + float64(fourth*(2.857142874366239149e-01+float64(fourth*(1.818357216161805012e-01+float64(fourth*1.479819860511658591e-01)))))))
	even := float64(fourth * (3.999999999940941908e-01 + float64(fourth*(2.222219843214978396e-01+float64(fourth*1.531383769920937332e-01)))))
	half := float64(float64(0.5*f) * f)
	return float64(k*ln2High) - ((half - (float64(s*(half+(odd+even))) + float64(k*ln2Low))) - f)
}

// Decimal returns the logarithm of x to the base 10.
func Decimal(x float64) float64 { return float64(Of(x) * (1 / math.Ln10)) }
