"""Formulas with special functions, as they stand in books of physics, finance and statistics, in units of practice."""

from dataclasses import dataclass

Side = tuple[float, float]
SHARES = (1e-2, 1e-3)  # of the range of f: the tolerances


@dataclass(frozen=True)
class Special:
    """A formula with its domain, and a sentence that says what it is and in which units."""

    name: str
    title: str
    formula: str
    domain: dict[str, Side]
    about: str


def airy_disk(argument: str) -> str:
    return f"(2*j1({argument})/({argument}))^2"


def edge(w: str) -> str:
    return f"((fresnelc({w}) + 0.5)^2 + (fresnels({w}) + 0.5)^2)/2"


def call_price(strike: float, rate: float) -> str:
    first = f"(log(S/{strike:g}) + ({rate:g} + s^2/2)*T)/(s*sqrt(T))"
    return f"S*normcdf({first}) - {strike:g}*exp(-{rate:g}*T)*normcdf({first} - s*sqrt(T))"


def loops() -> str:
    m = "(4*a*b/((a + b)^2 + d^2))"
    return f"4*pi*sqrt(a*b)*((2 - {m})*ellipk({m}) - 2*ellipe({m}))/sqrt({m})"


FORMULAS = (
    Special(
        "airy-disk", "Airy disk", airy_disk("pi*D*q/0.55"), {"q": (0, 2), "D": (0.5, 2)},
        "Green light (0.55 µm) behind a round hole of D mm, at q mrad from the axis, as a share of the intensity on the axis.",
    ),
    Special(
        "bessel-beam", "Bessel beam", "j0(2*pi/0.633*sin(a*pi/180)*r)^2", {"r": (0, 40), "a": (0.5, 3)},
        "A beam that does not spread, r µm from its axis: intensity of red light (0.633 µm) that a cone bends by a degrees.",
    ),
    Special(
        "edge", "Light at an edge", edge("x*sqrt(2/(0.633*d))"), {"x": (-1, 2), "d": (0.5, 2)},
        "Intensity x mm inside the lit side of a straight edge's shadow, d m behind it (0.633 µm): Fresnel's fringes.",
    ),
    Special(
        "heating", "Heating a wall", "20 + 80*erfc(10*x/(2*sqrt(60*a*t)))", {"x": (0, 10), "t": (1, 60), "a": (0.5, 15)},
        "Temperature in °C at a depth of x cm, t minutes after its surface went from 20 to 100 °C; a is the diffusivity, mm²/s.",
    ),
    Special(
        "option", "Option price", call_price(100, 0.02), {"S": (60, 140), "s": (0.1, 0.6), "T": (0.1, 2)},
        "Black and Scholes: a call with strike 100 and T years to go, on a share at S with volatility s; interest rate 2 %.",
    ),
    Special(
        "queue", "Waiting in a queue",
        "1/(1 + sqrt(2*pi)*(1 - r)*sqrt(n)*normcdf((1 - r)*sqrt(n))*exp((1 - r)^2*n/2))", {"n": (10, 200), "r": (0.7, 0.99)},
        "Halfin and Whitt: the probability that a caller waits, with n agents, each busy a fraction r of the time.",
    ),
    Special(
        "pendulum", "Pendulum", "4*sqrt(L/g)*ellipk(sin(a/2)^2)", {"L": (0.1, 2), "g": (1.6, 25), "a": (0, 3)},
        "Period, in s, of a pendulum of length L m and amplitude a (in rad), where gravity is g m/s²: from the Moon to Jupiter.",
    ),
    Special(
        "loops", "Two coils", loops(), {"a": (1, 5), "b": (1, 5), "d": (1, 10)},
        "Maxwell's mutual inductance, in nH, of two coaxial rings of radius a and b cm, d cm apart.",
    ),
    Special(
        "well", "Water level near a well", "-500/(4*pi*T)*ei(-r^2*0.001/(4*T*t))",
        {"r": (5, 100), "t": (0.1, 10), "T": (100, 1000)},
        "Theis: drawdown in metres, r m from a well, after t days of pumping 500 m³ a day; T m²/day is the transmissivity.",
    ),
    Special(
        "diode", "Diode and resistor", "25.85/R*lambertw(1e-9*R/25.85*exp(V/0.02585))", {"V": (0, 1), "R": (1, 100)},
        "Current in mA through a diode (saturation current 1 pA, at 300 K) in series with R Ω, at V volts.",
    ),
    Special(
        "neutron", "Bouncing neutron", "ai(z/5.87 - E/0.602)^2", {"z": (0, 60), "E": (0.5, 4)},
        "Density, up to a factor, of a neutron of energy E peV that bounces on a mirror, z µm above it.",
    ),
    Special(
        "student", "Student's t",
        "exp(lgamma((n + 1)/2) - lgamma(n/2))/sqrt(pi*n)*(1 + t^2/n)^(-(n + 1)/2)", {"t": (-5, 5), "n": (1, 30)},
        "Density at t of Student's distribution with n degrees of freedom, whole or not.",
    ),
)  # fmt: skip
