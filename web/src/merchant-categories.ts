/** Names of merchant category codes (ISO 18245), without the codes of individual airlines, hotels and car rentals. */
const CATEGORIES: ReadonlyMap<string, string> = new Map(
  `0742 Veterinary services
0763 Agricultural cooperatives
0780 Landscaping and horticulture
1520 General contractors
1711 Heating, plumbing and air conditioning contractors
1731 Electrical contractors
1740 Masonry, tile and insulation contractors
1750 Carpentry contractors
1761 Roofing and siding contractors
1771 Concrete work contractors
1799 Special trade contractors
2741 Publishing and printing
2791 Typesetting and platemaking
2842 Specialty cleaning
4011 Railroads, freight
4111 Local commuter transport and ferries
4112 Passenger railways
4119 Ambulance services
4121 Taxis and limousines
4131 Bus lines
4214 Freight carriers, trucking and movers
4215 Couriers, air and ground
4225 Storage and warehousing
4411 Cruise lines
4457 Boat rentals
4468 Marinas and marine service
4511 Airlines
4582 Airports and terminals
4722 Travel agencies and tour operators
4784 Tolls and bridge fees
4789 Transportation services
4812 Telephones and telecommunication equipment
4814 Telecommunication services
4816 Computer networks and information services
4821 Telegraph services
4829 Money transfers
4899 Cable, satellite and streaming services
4900 Utilities: electric, gas, water, sanitary
5013 Motor vehicle supplies, wholesale
5021 Office and commercial furniture
5039 Construction materials
5044 Photographic, copying and microfilm equipment
5045 Computers, peripherals and software
5046 Commercial equipment
5047 Medical, dental and laboratory equipment
5051 Metal service centers
5065 Electrical parts and equipment
5072 Hardware and supplies, wholesale
5074 Plumbing and heating equipment
5085 Industrial supplies
5094 Precious stones, metals, watches and jewelry, wholesale
5099 Durable goods
5111 Stationery, office and printing supplies
5122 Drugs and druggist sundries
5131 Textiles and dry goods
5137 Uniforms and commercial clothing
5139 Commercial footwear
5169 Chemicals and allied products
5172 Petroleum and petroleum products
5192 Books, periodicals and newspapers
5193 Florist supplies and nursery stock
5198 Paints, varnishes and supplies
5199 Nondurable goods
5200 Home supply warehouses
5211 Lumber and building materials
5251 Hardware stores
5261 Nurseries, lawn and garden supplies
5300 Wholesale clubs
5309 Duty-free stores
5310 Discount stores
5311 Department stores
5331 Variety stores
5399 General merchandise
5411 Grocery stores and supermarkets
5422 Meat and seafood stores
5441 Candy and confectionery stores
5451 Dairy product stores
5462 Bakeries
5499 Convenience and specialty food stores
5511 Car and truck dealers
5532 Tire stores
5533 Automotive parts and accessories
5541 Service stations
5542 Automated fuel dispensers
5552 Electric vehicle charging
5571 Motorcycle dealers
5611 Men's clothing
5621 Women's clothing
5641 Children's clothing
5651 Family clothing
5655 Sports apparel
5661 Shoe stores
5691 Men's and women's clothing
5699 Apparel and accessories
5712 Furniture and home furnishings
5722 Household appliances
5732 Electronics stores
5733 Music stores and instruments
5734 Computer software stores
5735 Record stores
5811 Caterers
5812 Restaurants
5813 Bars and nightclubs
5814 Fast food restaurants
5815 Digital goods: books, films, music
5816 Digital goods: games
5817 Digital goods: applications
5818 Digital goods: large merchants
5912 Drug stores and pharmacies
5921 Package stores: beer, wine, liquor
5931 Used merchandise and secondhand stores
5932 Antique shops
5933 Pawn shops
5940 Bicycle shops
5941 Sporting goods
5942 Book stores
5943 Stationery stores
5944 Jewelry, watches and silverware
5945 Hobby, toy and game shops
5946 Camera and photographic supplies
5947 Gift, card and novelty shops
5960 Direct marketing: insurance
5962 Direct marketing: travel
5964 Direct marketing: catalog merchants
5965 Direct marketing: catalog and retail
5966 Direct marketing: outbound telemarketing
5967 Direct marketing: inbound telemarketing
5968 Direct marketing: subscriptions
5969 Direct marketing: other
5970 Artists' supplies and craft shops
5977 Cosmetic stores
5992 Florists
5993 Cigar stores
5994 News dealers and newsstands
5995 Pet shops
5999 Specialty retail
6010 Cash disbursements, manual
6011 Cash disbursements, automated
6012 Financial institutions
6051 Quasi cash, cryptocurrency and money orders
6211 Securities brokers
6300 Insurance
6513 Real estate agents and rentals
6540 Stored value and prepaid loads
7011 Hotels and lodging
7032 Sporting and recreational camps
7210 Laundry and cleaning services
7230 Beauty and barber shops
7261 Funeral services
7273 Dating services
7276 Tax preparation
7277 Counseling services
7299 Personal services
7311 Advertising services
7321 Credit reporting agencies
7333 Commercial photography, art and graphics
7338 Copying and reproduction services
7339 Secretarial support
7342 Exterminating and disinfecting
7349 Cleaning and maintenance
7361 Employment agencies
7372 Computer programming and data processing
7375 Information retrieval services
7379 Computer maintenance and repair
7392 Management, consulting and public relations
7393 Detective and security services
7394 Equipment and tool rental
7395 Photo finishing
7399 Business services
7512 Car rental
7513 Truck and trailer rental
7523 Parking lots and garages
7531 Automotive body repair
7538 Automotive service
7542 Car washes
7549 Towing services
7622 Electronics repair
7699 Repair shops
7800 Government-owned lotteries
7801 Licensed online casinos
7802 Licensed horse and dog racing
7829 Motion picture and video production
7832 Cinemas
7841 Video rental
7922 Theaters and ticket agencies
7929 Bands and entertainers
7933 Bowling alleys
7941 Sports clubs and fields
7991 Tourist attractions and exhibits
7993 Video amusement supplies
7994 Video game arcades
7995 Gambling and betting
7996 Amusement parks
7997 Clubs with memberships
7999 Recreation services
8011 Doctors
8021 Dentists
8043 Opticians
8050 Nursing and personal care
8062 Hospitals
8071 Medical and dental laboratories
8099 Medical services
8111 Legal services
8211 Elementary and secondary schools
8220 Colleges and universities
8241 Correspondence schools
8244 Business and secretarial schools
8249 Vocational and trade schools
8299 Schools and educational services
8351 Child care
8398 Charities and social services
8641 Civic and fraternal associations
8651 Political organizations
8661 Religious organizations
8699 Membership organizations
8734 Testing laboratories
8911 Architects, engineers and surveyors
8931 Accounting and auditing
8999 Professional services
9211 Court costs, alimony and child support
9222 Fines
9311 Tax payments
9399 Government services
9402 Postal services`
    .split("\n")
    .map((line) => [line.slice(0, 4), line.slice(5)]),
);

/** Returns `Restaurants (5812)`, or only the code if it has no name here. */
export function categoryNamed(code: string): string {
  const name = CATEGORIES.get(code);
  return name === undefined ? code : `${name} (${code})`;
}

const isCategory = (value: string): boolean => /^[0-9]{4}$/.test(value);

/** Returns all categories, and the codes of `others` that have no name here. */
export const categoryOptions = (
  others: readonly string[],
): { readonly value: string; readonly label: string }[] =>
  [...new Set([...CATEGORIES.keys(), ...others.filter(isCategory)])].map((code) => ({
    value: code,
    label: categoryNamed(code),
  }));
